"""Numbers of 8 bits, which NumPy and CuPy have no type for, with the scale of their matrix."""

from __future__ import annotations

import math
import typing

import numpy as np

from . import _abi as abi
from . import _dense
from ._hints import Array, EightBits
from .errors import InvalidArgument

_TYPE_OF: dict[str, typing.Any] = {abi.ELEMENT_TYPES[name].dtype: name for name in abi.EIGHT_BITS}


class Fp8(typing.NamedTuple):
    """A matrix or the values of A in 8 bits: an element is `scale` times what is stored.

    values  an array of float8_e4m3fn or float8_e5m2 (torch, ml_dtypes), or of uint8 that holds their bits
    type    "fp8_e4m3" or "fp8_e5m2": what the bits in an array of uint8 are
    """

    values: Array
    scale: float = 1.0
    type: EightBits = "fp8_e4m3"


def is_stored(x):
    """Whether it is in 8 bits already."""
    return isinstance(x, Fp8) or _dtype(x) in _TYPE_OF


def type_of(x):
    """The name of the type of an Fp8."""
    return _TYPE_OF.get(_dtype(x.values), x.type)


def fp8(x: Array, type: EightBits = "fp8_e4m3") -> Fp8:
    """An Fp8 of the same shape: `x` where it has 8 bits, else rounded to nearest even in `type`. The scale
    makes the largest magnitude the type's largest number, 448 or 57344; of an array on a GPU the host waits
    for it."""
    if isinstance(x, Fp8):
        return x._replace(scale=_checked_scale(x.scale))
    if _dtype(x) in _TYPE_OF:
        return Fp8(x, type=_TYPE_OF[_dtype(x)])
    if type not in abi.EIGHT_BITS:
        raise InvalidArgument(f"type is {type!r}; {' or '.join(abi.EIGHT_BITS)} is wanted")
    if not _is_dense_and_real(x):
        what = f"{x.__class__.__name__} of {_dtype(x)}" if _dtype(x) else x.__class__.__name__
        raise InvalidArgument(
            f"a {what} cannot be rounded to {type}: a dense array of real numbers of NumPy, torch or CuPy is wanted"
        )
    torch = _dense.loaded("torch") if _dense.is_torch(x) else None
    if torch is not None:
        x = x.detach().to(torch.float32)
        finite = torch.nan_to_num(x.abs(), 0.0, 0.0, 0.0)
    else:
        x = x.astype(np.float32)
        finite = abs(x)
        finite[~(finite < np.inf)] = 0
    scale = _scale_of(float(finite.max()) if 0 not in x.shape else 0.0, type)
    if torch is not None:
        return Fp8((x / scale).to(getattr(torch, abi.ELEMENT_TYPES[type].dtype)), scale, type)
    return Fp8(_encoded(x / np.float32(scale), type), scale, type)


def _checked_scale(scale):
    try:
        number = float(scale)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 < number < math.inf:
        raise InvalidArgument(f"the scale is {scale!r}; a finite number above 0 is wanted")
    return number


def _is_dense_and_real(x):
    """Whether it is an array that can be rounded here."""
    if _dense.is_torch(x):
        dense = x.layout is _dense.loaded("torch").strided and not x.is_nested
        return dense and not x.is_complex() and (x.is_cpu or x.is_cuda)
    if not isinstance(x, np.ndarray) and not _dense.is_cupy(x):
        return False
    return np.dtype(x.dtype).kind in "biuf" or _dtype(x).startswith(("float", "bfloat"))


def bits_of(x):
    """Of values in 8 bits their bits as uint8, their scale and their type; of any other array itself and
    None twice."""
    if not is_stored(x):
        return x, None, None
    values, scale, type = fp8(x)
    if _dtype(values) in _TYPE_OF:
        type = _TYPE_OF[_dtype(values)]
        values = values.view(_dense.loaded("torch").uint8 if _dense.is_torch(values) else np.uint8)
    return values, scale, type


def decoded(bits, type="fp8_e4m3"):
    """What is stored in an array of uint8, as fp32."""
    element = abi.ELEMENT_TYPES[type]
    if _dense.is_torch(bits):
        torch = _dense.loaded("torch")
        return bits.view(getattr(torch, element.dtype)).to(torch.float32)
    steps, bias = 1 << element.fraction, _bias(element)  # between powers of two
    codes = np.arange(128)
    exponents, fractions = codes >> element.fraction, codes & steps - 1
    numbers = np.where(
        exponents == 0,
        fractions / steps * 2.0 ** (1 - bias),
        (1 + fractions / steps) * 2.0 ** (exponents - bias),
    )
    numbers[numbers > element.largest] = np.nan
    if infinity := _infinity(element):
        numbers[infinity] = np.inf
    table = np.concatenate([numbers, -numbers]).astype(np.float32)
    return (_dense.loaded("cupy").asarray(table) if _dense.is_cupy(bits) else table)[bits]


def _dtype(x):
    return str(getattr(x, "dtype", "")).replace("torch.", "")


def _bias(element):
    return (1 << 6 - element.fraction) - 1


def _infinity(element):
    """Its code, None where the type has none: then the largest exponent has numbers."""
    code = 128 - (1 << element.fraction)
    return code if element.largest < 2.0 ** ((code >> element.fraction) - _bias(element)) else None


def _scale_of(greatest, type):
    """As scale_of in include/spmmbench/precision.hpp."""
    if greatest == 0:
        return 1.0
    largest = np.float32(abi.ELEMENT_TYPES[type].largest)
    return float(max(np.float32(greatest) / largest, np.finfo(np.float32).tiny))


def _encoded(x, type):
    """The bits of fp32, rounded: BinaryFormat in include/spmmbench/precision.hpp."""
    element = abi.ELEMENT_TYPES[type]
    bias, drop = _bias(element), 23 - element.fraction
    bits = x.view(np.uint32)
    magnitude = bits & np.uint32(0x7FFFFFFF)
    # Below the smallest normal number the last bit of this sum is that of the format.
    align = np.float32(2.0 ** (1 - bias + drop))
    subnormal = (magnitude.view(np.float32) + align).view(np.uint32) - align.view(np.uint32)
    half_less_one, one = np.uint32((1 << drop - 1) - 1), np.uint32(1)
    normal = (magnitude + half_less_one + (magnitude >> np.uint32(drop) & one)) >> np.uint32(drop)
    normal = normal - np.uint32(127 - bias << element.fraction)  # the difference of the biases
    is_normal = magnitude >= np.float32(2.0 ** (1 - bias)).view(np.uint32)
    code = subnormal + (normal - subnormal) * is_normal
    nan = np.uint32(127)
    too_large = is_normal & (code > np.uint32(_infinity(element) or nan))
    code = code + (np.uint32(_infinity(element) or nan) - code) * too_large
    code = code + (nan - code) * (magnitude > np.uint32(0x7F800000))
    return (code | bits >> np.uint32(31) << np.uint32(7)).astype(np.uint8)
