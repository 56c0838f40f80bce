"""One-dimensional arrays of any library: NumPy, torch, CuPy, or with __cuda_array_interface__."""

import functools

import numpy as np

from . import _abi as abi
from . import _dense, _fp8
from .errors import InvalidArgument

INDEX_TYPES = {"int32": abi.I32, "int64": abi.I64}
VALUE_TYPES = {element.dtype: element.value for element in abi.ELEMENT_TYPES.values() if element.bytes > 1}
_BITS_OF_BF16 = "uint16"  # in arrays of libraries that have no bf16
_TYPES_OF_BITS = {**VALUE_TYPES, _BITS_OF_BF16: abi.BF16}


def value_type_of(x, eight_bits):
    """`eight_bits`: the name of the type of which an array of uint8 holds the bits."""
    return abi.ELEMENTS[eight_bits] if dtype_of(x) == _dense.BITS else _TYPES_OF_BITS[dtype_of(x)]


def dtype_of(x):
    return name_of(x.dtype)


@functools.cache
def name_of(dtype):
    return str(dtype).replace("torch.", "")


def cast(x, name):
    if dtype_of(x) == name:
        return x
    if _dense.is_torch(x):
        return x.to(getattr(_dense.loaded("torch"), name))
    if not hasattr(x, "astype"):
        raise InvalidArgument(f"a {type(x).__name__} of {dtype_of(x)} cannot be made one of {name} here")
    return x.astype(name)


def _viewed(x, name):
    """The same bytes as elements of another type."""
    return x.view(getattr(_dense.loaded("torch"), name) if _dense.is_torch(x) else name)


def _round_low_bits(bits, drop):
    """fp32's bits, as 32-bit integers, rounded to nearest even without the lowest `drop`. Infinities
    and NaN stay."""
    even = bits + ((1 << drop - 1) - 1) + (bits >> drop & 1) & -(1 << drop)
    finite = (bits & 0x7F800000) != 0x7F800000
    return bits + (even - bits) * finite


def rounded(x, precision):
    """Values as fp32, or fp64 at that precision, that holds them rounded to the precision: round_to in
    include/spmmbench/precision.hpp."""
    if precision == "fp64":
        return cast(x, "float64")
    x = cast(x, "float32")
    if precision == "fp32":
        return x
    if precision == "fp16":
        return cast(cast(x, "float16"), "float32")
    if not _dense.is_torch(x) and not hasattr(x, "astype"):
        raise InvalidArgument(f"a {type(x).__name__} cannot be rounded to {precision} here")
    drop = abi.FRACTION_BITS["fp32"] - abi.FRACTION_BITS[precision]
    return _viewed(_round_low_bits(_viewed(x, "int32"), drop), "float32")


def stored(x, precision, allowed):
    """Rounded values in the element type of the precision where it is allowed, else as they are."""
    element = abi.ELEMENT_OF[precision]
    if element in ("fp32", "fp64") or not allowed >> abi.ELEMENTS[element] & 1:
        return x
    if element == "fp16":
        return cast(x, "float16")
    if _dense.is_torch(x):
        return cast(x, "bfloat16")
    return cast(_viewed(x, "int32") >> 16, _BITS_OF_BF16)


def _holds_integers(x):
    if _dense.is_torch(x):
        return dtype_of(x).startswith(("int", "uint"))
    return np.dtype(x.dtype).kind in "iu"


def indices(x, name):
    """As int32 or int64, which kernels and libraries compute with."""
    if dtype_of(x) in INDEX_TYPES:
        return x
    if not _holds_integers(x):
        raise InvalidArgument(f"A has {name} of {dtype_of(x)}; integers are wanted")
    wide = cast(x, "int64")
    if dtype_of(x).endswith(("uint64", "u8")) and bool((wide < 0).any()):
        raise InvalidArgument(f"A has {name} of 2^63 and more")
    return wide


def reals(x):
    """Values, which are real numbers; those of Python's own objects as fp64."""
    kind = dtype_of(x)
    if kind in VALUE_TYPES:
        return x
    if kind == "object" and not any(one is None for one in x.flat):  # which astype takes for NaN
        try:
            return x.astype(np.float64)
        except (TypeError, ValueError):
            pass
    if _dense.is_torch(x):
        real = not x.is_complex()
    else:
        real = np.dtype(x.dtype).kind in "biuf" or kind.startswith(("float", "bfloat"))
    if not real:
        raise InvalidArgument(f"A has values of {kind}; real numbers are wanted")
    return x


def contiguous(x):
    """The same values one after another, which is how a library reads them: no copy where they lie
    so."""
    if _dense.is_torch(x):
        return x.resolve_neg().contiguous()
    if isinstance(x, np.ndarray):
        return np.require(x, requirements=["C", "ALIGNED"])
    if _dense.is_cupy(x):
        return _dense.loaded("cupy").ascontiguousarray(x)
    strides = x.__cuda_array_interface__.get("strides")
    if strides is not None and x.shape[0] > 1 and tuple(strides) != (np.dtype(x.dtype).itemsize,):
        raise InvalidArgument(f"a {type(x).__name__} of A has strides; contiguous arrays are wanted")
    return x


def array_of(x):
    """`x` of a tuple, or NumPy's array of it where it is a list or anything else that NumPy reads."""
    if _dense.is_torch(x) or isinstance(x, np.ndarray) or hasattr(x, "__cuda_array_interface__"):
        return x
    if isinstance(x, _fp8.Fp8):
        return x._replace(values=array_of(x.values))
    try:
        array = np.asarray(x)
    except ValueError:  # lists of different lengths
        array = None
    if array is None or array.dtype.kind not in "biufc":
        raise InvalidArgument(f"A has a {type(x).__name__} where an array of numbers is wanted")
    return array if array.size else array.astype(np.int64)  # of [], which has no type


def index_for(x, allowed):
    if allowed >> INDEX_TYPES[dtype_of(x)] & 1:
        return x
    wanted = "int32" if allowed >> abi.I32 & 1 else "int64"
    if wanted == "int32" and x.shape[0] > 0 and int(x.max()) > np.iinfo(np.int32).max:
        raise InvalidArgument(f"this kernel takes 32-bit indices, and A has {int(x.max())}")
    return cast(x, wanted)


def address_of(x):
    if _dense.is_torch(x):
        return x.data_ptr()
    if isinstance(x, np.ndarray):
        return x.ctypes.data
    return x.__cuda_array_interface__["data"][0]


def to_numpy(x):
    if _dense.is_torch(x):
        return x.detach().cpu().numpy()
    if isinstance(x, np.ndarray):
        return x
    if _dense.is_cupy(x):
        return x.get()
    if hasattr(x, "copy_to_host"):  # Numba
        return x.copy_to_host()
    raise InvalidArgument(f"a {type(x).__name__} cannot be brought to the host here")


def device_of(x):
    """Where an array lies: "cpu", or the index of a GPU, None where it does not tell."""
    if _dense.is_torch(x):
        if not x.is_cpu and not x.is_cuda:
            raise InvalidArgument(f"an array lies on {x.device}; the CPU or a CUDA device is wanted")
        return "cpu" if x.is_cpu else x.device.index
    if isinstance(x, np.ndarray):
        return "cpu"
    return x.device.id if _dense.is_cupy(x) else None
