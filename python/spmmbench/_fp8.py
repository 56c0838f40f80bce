"""Numbers of 8 bits (fp8_e4m3), which NumPy and CuPy have no type for, with the scale of their matrix."""

import typing

import numpy as np

from . import _dense
from .errors import InvalidArgument

_LARGEST = 448.0
_NAME = "float8_e4m3fn"  # in torch, and in NumPy with ml_dtypes


class Fp8(typing.NamedTuple):
    """A matrix or the values of A in fp8_e4m3: an element is `scale` times what is stored.

    values  an array of float8_e4m3fn (torch, ml_dtypes), or of uint8 that holds their bits
    """

    values: object
    scale: float = 1.0


def is_stored(x):
    """Whether it is in 8 bits already."""
    return isinstance(x, Fp8) or _dtype(x) == _NAME


def fp8(x):
    """An Fp8 of the same shape: `x` where it has 8 bits, else rounded to nearest even. The scale makes the
    largest magnitude 448; of an array on a GPU the host waits for it."""
    if isinstance(x, Fp8):
        return x
    if _dtype(x) == _NAME:
        return Fp8(x)
    torch = _dense.loaded("torch") if _dense.is_torch(x) else None
    if torch is None and not isinstance(x, np.ndarray) and not _dense.is_cupy(x):
        raise InvalidArgument(f"a {type(x).__name__} cannot be rounded to fp8_e4m3 here")
    if torch is not None:
        x = x.detach().to(torch.float32)
        finite = torch.nan_to_num(x.abs(), 0.0, 0.0, 0.0)
    else:
        x = x.astype(np.float32)
        finite = abs(x)
        finite[~(finite < np.inf)] = 0
    scale = _scale_of(float(finite.max()) if 0 not in x.shape else 0.0)
    if torch is not None:
        return Fp8((x / scale).to(torch.float8_e4m3fn), scale)
    return Fp8(_encoded(x / np.float32(scale)), scale)


def bits_of(x):
    """Of values in 8 bits their bits as uint8, and their scale; of any other array itself and None."""
    values, scale = x if isinstance(x, Fp8) else (x, 1.0)
    if _dtype(values) == _NAME:
        kind = _dense.loaded("torch").uint8 if _dense.is_torch(values) else np.uint8
        return values.view(kind), scale
    return (values, scale) if isinstance(x, Fp8) else (x, None)


def decoded(bits):
    """What is stored in an array of uint8, as fp32."""
    if _dense.is_torch(bits):
        torch = _dense.loaded("torch")
        return bits.view(torch.float8_e4m3fn).to(torch.float32)
    codes = np.arange(128)
    exponents, fractions = codes >> 3, codes & 7
    numbers = np.where(
        exponents == 0, fractions / 512, (1 + fractions / 8) * 2.0 ** (exponents - 7)
    )
    numbers[127] = np.nan
    table = np.concatenate([numbers, -numbers]).astype(np.float32)
    return (_dense.loaded("cupy").asarray(table) if _dense.is_cupy(bits) else table)[bits]


def _dtype(x):
    return str(getattr(x, "dtype", "")).replace("torch.", "")


def _scale_of(greatest):
    """As scale_of in include/spmmbench/precision.hpp."""
    if greatest == 0:
        return 1.0
    return float(max(np.float32(greatest) / np.float32(_LARGEST), np.finfo(np.float32).tiny))


def _encoded(x):
    """The bits of fp32, rounded: BinaryFormat<4, 3> in include/spmmbench/precision.hpp."""
    bits = x.view(np.uint32)
    magnitude = bits & np.uint32(0x7FFFFFFF)
    # Below the smallest normal number the last bit of this sum is that of the format.
    align = np.float32(1 << 14)
    subnormal = (magnitude.view(np.float32) + align).view(np.uint32) - align.view(np.uint32)
    half_less_one, one = np.uint32((1 << 19) - 1), np.uint32(1)
    normal = (magnitude + half_less_one + (magnitude >> np.uint32(20) & one)) >> np.uint32(20)
    normal = normal - np.uint32(120 << 3)  # the difference of the biases
    is_normal = magnitude >= np.float32(2.0**-6).view(np.uint32)
    code = subnormal + (normal - subnormal) * is_normal
    is_nan = magnitude > np.float32(464).view(np.uint32)
    code = code + (np.uint32(0x7F) - code) * is_nan
    return (code | bits >> np.uint32(31) << np.uint32(7)).astype(np.uint8)
