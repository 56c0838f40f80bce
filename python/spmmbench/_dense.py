"""Dense arrays of any library, as the kernels see them: an address, sizes and strides. Nothing is
copied here."""

import collections
import ctypes
import functools
import sys

import numpy as np

from . import _abi as abi
from .errors import InvalidArgument

# data: address; shape: (rows, cols); strides: of a row and of a column, in elements; type: of
# ELEMENT_TYPES, or BITS; device: "cpu" or the index of a GPU; stream: where the array's producer
# works, or None; keep: what keeps the memory alive
View = collections.namedtuple("View", "data shape strides type device stream keep")

BITS = "uint8"  # of any type of 8 bits
_NUMPY_TYPES = {element.dtype: name for name, element in abi.ELEMENT_TYPES.items()} | {BITS: BITS}
_NUMPY_NAMES = {
    name: BITS if name in abi.EIGHT_BITS else element.dtype for name, element in abi.ELEMENT_TYPES.items()
}
_DLPACK_TYPES = {element.dlpack: name for name, element in abi.ELEMENT_TYPES.items()}


def holds(view, kind):
    """Whether an array may be read as elements of a type."""
    return view.type == kind or view.type == BITS and kind in abi.EIGHT_BITS


def loaded(name):
    """A package that the program has imported, else None."""
    return sys.modules.get(name)


def is_torch(x):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def torch_stream(device):
    """The handle of torch's current stream on a GPU."""
    return _torch_stream_of()(device)


@functools.cache
def _torch_stream_of():
    torch = sys.modules["torch"]
    # What torch's own compiler calls, and a twentieth of what current_stream() takes.
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return raw or (lambda device: torch.cuda.current_stream(device).cuda_stream)


def is_cupy(x):
    return type(x).__module__.partition(".")[0] == "cupy"


def _type(names, key, what):
    if key not in names:
        raise InvalidArgument(f"{what} is {key}; fp32, fp16, bf16 or fp64 is wanted")
    return names[key]


def _matrix(shape, what):
    if len(shape) != 2:
        raise InvalidArgument(f"{what} is {len(shape)}-dimensional; a matrix is wanted")
    return tuple(shape)


def _numpy_type(dtype, what):
    return _type(_NUMPY_TYPES, dtype.name if dtype.isnative else dtype.str, what)


def _steps(strides, dtype, what):
    """Strides in elements, of strides in bytes."""
    if any(step % dtype.itemsize for step in strides):
        raise InvalidArgument(f"{what} has strides of {tuple(strides)} bytes; whole elements are wanted")
    return tuple(step // dtype.itemsize for step in strides)


def _writable(yes, what):
    if what == "C" and not yes:
        raise InvalidArgument("C is read-only")


# Each class below has view(x, what), and end(x): the address behind the memory of which x is a part,
# None where x does not tell.
class TorchArrays:
    """PyTorch tensors, on the CPU or on a GPU."""

    _types = None

    @classmethod
    def types(cls):
        if cls._types is None:
            torch = loaded("torch")
            # Torch 2.1 and newer have types of 8 bits.
            names = {
                name: getattr(torch, element.dtype, torch.uint8) for name, element in abi.ELEMENT_TYPES.items()
            }
            cls._types = {**names, **{value: key for key, value in names.items()}, torch.uint8: BITS}
        return cls._types

    @classmethod
    def view(cls, x, what):
        on_gpu = x.is_cuda
        if not on_gpu and not x.is_cpu:
            raise InvalidArgument(f"{what} lies on {x.device}; the CPU or a CUDA device is wanted")
        torch = loaded("torch")
        if x.layout is not torch.strided or x.is_nested:
            raise InvalidArgument(f"{what} is a sparse or nested tensor; a dense one is wanted")
        if x.is_neg():  # memory holds the values before the sign
            raise InvalidArgument(f"{what} is negated lazily: pass {what}.resolve_neg()")
        if x.requires_grad and torch.is_grad_enabled():
            raise InvalidArgument(
                f"{what} requires a gradient, which a plan does not give: spmmbench.torch.SparseMatrix does"
            )
        return View(
            x.data_ptr(),
            _matrix(x.shape, what),
            x.stride(),
            _type(cls._types or cls.types(), x.dtype, what),
            x.device.index if on_gpu else "cpu",
            None,
            x,
        )

    @staticmethod
    def end(x):
        storage = x.untyped_storage()
        return storage.data_ptr() + storage.nbytes()

    @staticmethod
    def stream(view):
        return torch_stream(view.device)

    @classmethod
    def empty(cls, lines, ld, kind, like):
        return like.keep.new_empty((lines, ld), dtype=cls.types()[kind])


class NumpyArrays:
    """NumPy arrays, bfloat16 by ml_dtypes."""

    @staticmethod
    def view(x, what):
        if isinstance(x, np.ma.MaskedArray):
            raise InvalidArgument(f"{what} is a masked array")
        _writable(x.flags.writeable, what)
        kind = _numpy_type(x.dtype, what)
        shape = _matrix(x.shape, what)
        return View(x.ctypes.data, shape, _steps(x.strides, x.dtype, what), kind, "cpu", None, x)

    @staticmethod
    def end(x):
        while isinstance(x.base, np.ndarray):
            x = x.base
        last = sum((size - 1) * max(step, 0) for size, step in zip(x.shape, x.strides))
        return x.ctypes.data + last + x.itemsize

    @staticmethod
    def empty(lines, ld, kind, like):
        dtype = like.keep.dtype
        if _NUMPY_TYPES.get(dtype.name) != kind:
            try:
                dtype = np.dtype(_NUMPY_NAMES[kind])
            except TypeError:
                told = f"NumPy has no {kind} until ml_dtypes is imported: import it, or ask for another c_type"
                raise InvalidArgument(told) from None
        # Begins at a multiple of 256 bytes, as the program's own do.
        raw = np.empty(lines * ld * dtype.itemsize + 256, np.uint8)
        begin = -raw.ctypes.data % 256
        return raw[begin : begin + lines * ld * dtype.itemsize].view(dtype).reshape(lines, ld)


class CudaInterfaceArrays:
    """Anything with __cuda_array_interface__: CuPy, Numba, RAPIDS, ..."""

    @staticmethod
    def view(x, what):
        told = x.__cuda_array_interface__
        if told.get("mask") is not None:
            raise InvalidArgument(f"{what} is a masked array")
        data, read_only = told["data"]
        _writable(not read_only, what)
        dtype = np.dtype(told["typestr"])
        kind = _numpy_type(dtype, what)
        shape = _matrix(told["shape"], what)
        steps = told.get("strides") or (shape[1] * dtype.itemsize, dtype.itemsize)
        strides = _steps(steps, dtype, what)
        device = x.device.id if is_cupy(x) else None
        return View(data, shape, strides, kind, device, told.get("stream"), x)

    @staticmethod
    def end(x):
        return x.data.mem.ptr + x.data.mem.size if is_cupy(x) else None

    @staticmethod
    def stream(view):
        if is_cupy(view.keep):
            return loaded("cupy").cuda.get_current_stream().ptr
        return view.stream or 0

    @staticmethod
    def empty(lines, ld, kind, like):
        if not is_cupy(like.keep):
            raise InvalidArgument("arrays of this library cannot be made here: pass out=")
        cupy = loaded("cupy")
        if kind == "bf16":
            raise InvalidArgument("CuPy has no bf16: pass out= or another c_type")
        return cupy.empty((lines, ld), dtype=_NUMPY_NAMES[kind])


class _DlDevice(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class _DlTensor(ctypes.Structure):  # the beginning of a DLManagedTensor
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _DlDevice),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class DlpackArrays:
    """Anything with __dlpack__: JAX, TensorFlow, MXNet, ..."""

    _CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13
    _pointer = ctypes.pythonapi.PyCapsule_GetPointer
    _pointer.argtypes, _pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p

    @classmethod
    def view(cls, x, what):
        try:
            capsule = x.__dlpack__()
        except Exception as error:  # of whatever library the array is
            raise InvalidArgument(f"{what} gives no DLPack: {' '.join(str(error).split())}") from None
        tensor = _DlTensor.from_address(cls._pointer(capsule, b"dltensor"))
        shape = _matrix(tensor.shape[: tensor.ndim], what)
        strides = tuple(tensor.strides[:2]) if tensor.strides else (shape[1], 1)
        kind = _type(_DLPACK_TYPES, (tensor.code, tensor.bits), f"{what} (code, bits)")
        kinds = {cls._CPU: "cpu", cls._CUDA_HOST: "cpu"}
        device = kinds.get(tensor.device.device_type, tensor.device.device_id)
        if device != "cpu" and tensor.device.device_type not in (cls._CUDA, cls._CUDA_MANAGED):
            raise InvalidArgument(f"{what} lies neither on the CPU nor on a CUDA device")
        data = (tensor.data or 0) + tensor.byte_offset
        return View(data, shape, strides, kind, device, None, (x, capsule))

    @staticmethod
    def end(_x):
        return None

    @staticmethod
    def stream(_view):
        return 0  # the one that __dlpack__() has made the array ready for

    @staticmethod
    def empty(lines, ld, kind, like):
        raise InvalidArgument("arrays of this library cannot be made here: pass out=")


def arrays_of(x, what="B"):
    """The class above that knows arrays like `x`."""
    if is_torch(x):
        return TorchArrays
    if isinstance(x, np.ndarray):
        return NumpyArrays
    if hasattr(x, "__cuda_array_interface__"):
        return CudaInterfaceArrays
    if hasattr(x, "__dlpack__"):
        return DlpackArrays
    raise InvalidArgument(
        f"{what} is a {type(x).__name__}; a NumPy array, a torch tensor or anything with "
        "__cuda_array_interface__ or __dlpack__ is wanted"
    )


def stream_handle(stream):
    """The cudaStream_t of an int, a torch or CuPy stream, or anything with __cuda_stream__."""
    if isinstance(stream, int):
        return stream
    for name in ("cuda_stream", "ptr"):
        if hasattr(stream, name):
            return getattr(stream, name)
    if hasattr(stream, "__cuda_stream__"):
        return stream.__cuda_stream__()[1]
    raise InvalidArgument(f"a {type(stream).__name__} is no CUDA stream")
