"""include/spmmbench/measure.h from Python: a callable or a Plan, measured by libspmmbench.

B and C lie in the library's memory. Callables get them as arrays of NumPy, torch or CuPy, which keep
that memory alive."""

import contextlib
import ctypes
import json
import weakref

import numpy as np

from . import _abi as abi
from . import _dense, _sparse
from ._prepared import Prepared
from .errors import InvalidArgument

# of the arrays that are handed out; for bf16 those of its bits, which another library can view
_NUMPY_TYPES = {"fp32": np.float32, "fp16": np.float16, "bf16": np.int16, "fp64": np.float64}


class _Memory:
    """Bytes on a GPU, as __cuda_array_interface__ tells of them."""

    def __init__(self, address, count, owner):
        self.owner = owner
        self.__cuda_array_interface__ = {
            "shape": (count,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 2,
        }


class _NumpyArrays:
    """Arrays of NumPy over memory that the library owns."""

    device = "cpu"

    def __init__(self, _like):
        pass

    def require(self, kind):
        """Raises InvalidArgument where there are no arrays of a type of B or C, as asked for."""
        if kind == "bf16":
            raise InvalidArgument("NumPy has no bf16: pass like= of another library")

    def current(self):
        """A context in which the device of the arrays is the current one."""
        return contextlib.nullcontext()

    def on_stream(self, _handle):
        """A context in which work is enqueued on the stream."""
        return contextlib.nullcontext()

    def in_call(self):
        """A context of each call."""
        return contextlib.nullcontext()

    def over(self, dense, owner):
        """The array of an abi.Dense, which keeps `owner` alive."""
        kind = abi.NAME_OF_ELEMENT[dense.type]
        lines, length = dense.rows, dense.cols
        if dense.layout == abi.COL_MAJOR:
            lines, length = length, lines
        count = lines * dense.ld * abi.ELEMENT_BYTES[kind]
        flat = self._typed(self._bytes(dense.data, count, owner), kind)
        array = flat.reshape(lines, dense.ld)[:, :length]
        return array if dense.layout == abi.ROW_MAJOR else array.T

    def copy(self, to, c):
        np.copyto(to, c)

    def fill_with_nan(self, c):
        c.fill(np.nan)

    def _bytes(self, address, count, owner):
        if not count:
            return np.empty(0, np.uint8)
        memory = (ctypes.c_char * count).from_address(address)
        memory.owner = owner
        return np.frombuffer(memory, np.uint8)

    def _typed(self, raw, kind):
        return raw.view(_NUMPY_TYPES[kind])


class _TorchArrays(_NumpyArrays):
    def __init__(self, like):
        self._torch = _dense.loaded("torch")
        self._of_kind = _dense.TorchArrays.types()

    def require(self, kind):
        pass

    def copy(self, to, c):
        with self._torch.inference_mode():  # C may be of that mode
            to.copy_(c)

    def fill_with_nan(self, c):
        with self._torch.inference_mode():
            c.fill_(float("nan"))

    def _typed(self, raw, kind):
        if isinstance(raw, np.ndarray):
            raw = self._torch.from_numpy(raw)
        return raw.view(self._of_kind[kind])


class _TorchGpuArrays(_TorchArrays):
    def __init__(self, like):
        super().__init__(like)
        self._cuda = self._torch.cuda
        self._like = like.device
        self.device = like.device.index
        # What is allocated while a graph is captured belongs to the graph, which may be replayed
        # when the arrays are gone.
        self._pool = self._cuda.MemPool() if hasattr(self._cuda, "MemPool") else None

    def current(self):
        return self._cuda.device(self._like)

    def on_stream(self, handle):
        return self._cuda.stream(self._cuda.ExternalStream(handle, self._like))

    def in_call(self):
        if self._pool is None or not self._cuda.is_current_stream_capturing():
            return contextlib.nullcontext()
        return self._cuda.use_mem_pool(self._pool)

    def _bytes(self, address, count, owner):
        if not count:
            return self._torch.empty(0, dtype=self._torch.uint8, device=self._like)
        return self._torch.as_tensor(_Memory(address, count, owner), device=self._like)


class _CupyArrays(_NumpyArrays):
    def __init__(self, like):
        self._cupy = _dense.loaded("cupy")
        self.device = like.device.id

    def require(self, kind):
        if kind == "bf16":
            raise InvalidArgument("CuPy has no bf16: pass like= of another library")

    def current(self):
        return self._cupy.cuda.Device(self.device)

    def on_stream(self, handle):
        return self._cupy.cuda.ExternalStream(handle, self.device)

    def copy(self, to, c):
        self._cupy.copyto(to, c)

    def _bytes(self, address, count, owner):
        if not count:
            return self._cupy.empty(0, np.uint8)
        return self._cupy.asarray(_Memory(address, count, owner))


def arrays_like(like):
    """What makes arrays of the library, and on the device, of an array."""
    if _dense.is_torch(like):
        return (_TorchGpuArrays if like.is_cuda else _TorchArrays)(like)
    if isinstance(like, np.ndarray):
        return _NumpyArrays(like)
    if _dense.is_cupy(like):
        return _CupyArrays(like)
    raise InvalidArgument(
        f"arrays of {type(like).__module__} cannot be measured; those of NumPy, torch and CuPy can"
    )


class Bench:
    """B, C and the reference of one case in the library.

    a: Csr on the host, its columns ascending; case: what the fields of abi.Case are but of `a`,
    precision, shape and device; packed: whether lines of B and C follow each other without a gap
    """

    def __init__(self, library, a, precision, shape, arrays, packed, **case):
        self._library = library
        self.a, self.precision, self.shape, self.arrays = a, precision, shape, arrays
        csr = a.struct
        asked = abi.Case(
            a=ctypes.pointer(csr),
            precision=abi.PRECISIONS[precision],
            shape=ctypes.pointer(shape),
            device=abi.HOST if arrays.device == "cpu" else abi.CUDA,
            packed=packed,
            **case,
        )
        handle = ctypes.c_void_p()
        library.check_measure(library.measure.open(ctypes.byref(asked), ctypes.byref(handle)))
        self._handle = handle.value
        finalizer = weakref.finalize(self, library.measure.close, self._handle)
        finalizer.atexit = False  # the process's end frees it

    def run(self, product):
        """The row of a product: a Callable or an OfPlan."""
        told = ctypes.c_char_p()
        struct = product.struct()
        with product.context:
            status = self._library.measure.run(
                self._handle, ctypes.byref(struct), ctypes.byref(told)
            )
        if product.interrupted is not None:
            raise product.interrupted
        self._library.check_measure(status)
        row = json.loads(told.value)
        for group in (row["verify"] or {}, row["matrix"]):
            group.update((key, float(x)) for key, x in group.items() if x in ("inf", "nan"))
        if row["status"] == "failed" and product.error is not None:
            row["reason"] = product.error
        return row


class _Product:
    """What a bench runs. error: what the last call raised, in words; interrupted: a Ctrl-C in one of them;
    context: of the whole run."""

    def __init__(self, name):
        self._name = name.encode()
        self.context = contextlib.ExitStack()
        self.error = self.interrupted = None

    def _status_of(self, call, *arguments):
        """Calls, and returns what the interface says of it: no exception may cross it."""
        if self.interrupted is not None:
            return abi.FAILED
        try:
            call(*arguments)
        except BaseException as error:  # SystemExit too: it costs a row alone
            self.error = f"{type(error).__name__}: {error}"  # no frames, which would keep B and C alive
            if isinstance(error, KeyboardInterrupt):
                self.interrupted = error
            short_of_memory = isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__
            return abi.OUT_OF_MEMORY if short_of_memory else abi.FAILED
        self.error = None
        return abi.OK


class Callable(_Product):
    """f(B) that returns C, or, with `takes_out`, f(B, out=C)."""

    def __init__(self, name, function, takes_out, bench):
        super().__init__(name)
        self._function, self._takes_out, self._bench = function, takes_out, bench
        self._arrays = bench.arrays
        self._seen = {}  # address -> array
        self._returned = None  # by the last call
        self._stream = None  # the current one, once there is one

    def struct(self):
        return abi.Product(  # which keeps the functions alive
            name=self._name,
            accumulation=abi.SUMS_TENSOR_CORE,
            launch=abi.Launch(self._on_launch),
            take_c=abi.TakeC() if self._takes_out else abi.TakeC(self._on_take),
        )

    def _array(self, address):
        dense = abi.Dense.from_address(address)
        array = self._seen.get(dense.data)
        if array is None:
            array = self._seen[dense.data] = self._arrays.over(dense, self._bench)
        return array

    def _on_launch(self, _self, b, c, stream):
        return self._status_of(self._call, b, c, stream)

    def _call(self, b, c, stream):
        self._b = self._array(b)
        if stream != self._stream:  # once in a run
            self.context.enter_context(self._arrays.on_stream(stream))
            self._stream = stream
        with self._arrays.in_call():
            if self._takes_out:
                self._function(self._b, out=self._array(c))
            else:
                self._returned = self._function(self._b)

    def _on_take(self, _self, c, _stream):  # which is the current one
        return self._status_of(self._bring, c)

    def _bring(self, address):
        """Copies what the last call returned, and leaves NaN there, so that it cannot be given again."""
        to, c = abi.Dense.from_address(address), self._returned
        view = _dense.arrays_of(c, "C").view(c, "C")
        kind = abi.NAME_OF_ELEMENT[to.type]
        if view.shape != (to.rows, to.cols) or view.type != kind:
            raise InvalidArgument(
                f"C is {view.shape[0]} x {view.shape[1]} {view.type}; "
                f"{to.rows} x {to.cols} {kind} is wanted"
            )
        self._arrays.copy(self._array(address), c)
        if view.data != _dense.arrays_of(self._b).view(self._b, "B").data:  # B may be C
            self._arrays.fill_with_nan(c)


class OfPlan(_Product):
    """A Plan, settled, which the library launches without Python. The exact test has a plan of the same
    kernel."""

    def __init__(self, name, plan, bench):
        super().__init__(name)
        self._plan, self._bench = plan, bench
        self._others = {}  # handle -> plan
        _require_same(plan, bench)
        plan.settle()

    def struct(self):
        kernel = self._plan.prepared._kernel
        return abi.Product(
            name=self._name,
            self=self._plan._handle,
            accumulation=kernel.struct.accumulation,
            launch=kernel.struct.launch,
            with_values=abi.WithValues(self._on_values),
            release=abi.Release(self._on_release),
            last_error=kernel.library.last_error,
        )

    def _on_values(self, _self, values, other):
        return self._status_of(self._make, values, other)

    def _make(self, values, other):
        plan, a = self._plan, self._bench.a
        kernel = plan.prepared._kernel
        if self._bench.precision == "fp64":
            values = ctypes.cast(values, ctypes.POINTER(ctypes.c_double))
        given = np.ctypeslib.as_array(values, (a.nnz,)).copy() if a.nnz else np.empty(0, np.float32)
        lattice = _sparse.Csr(a.shape, a.row_ptr, a.col_idx, given, "cpu")
        spec = plan.prepared.kernel
        if kernel.name == "auto":  # which could pick another kernel for other values
            spec = plan.report()["params"].get("picked", spec)
        prepared = Prepared(lattice, spec, plan.prepared.precision, library=kernel.library)
        made = prepared.plan(plan.n, plan.layout, plan.c_type)
        self._others[made._handle] = made
        other[0] = made._handle

    def _on_release(self, other):
        self._others.pop(other, None)


def _require_same(plan, bench):
    """Raises InvalidArgument for a plan of another product than the bench measures."""
    shape, device = bench.shape, bench.arrays.device
    wanted = (
        bench.a.shape,
        shape.n,
        abi.NAME_OF_LAYOUT[shape.layout],
        abi.NAME_OF_ELEMENT[shape.c_type],
        bench.precision,
        device,
    )
    told = (
        plan.prepared.shape,
        plan.n,
        plan.layout,
        plan.c_type,
        plan.prepared.precision,
        plan.device,
    )
    names = ("A", "n", "layout", "c_type", "precision", "device")
    for name, has, wants in zip(names, told, wanted):
        if has != wants:
            raise InvalidArgument(f"the plan's {name} is {has}; {wants} is wanted")
