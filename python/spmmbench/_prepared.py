"""prepare(A) once, plan(n) per shape."""

from __future__ import annotations

import ctypes

import numpy as np

from . import _abi as abi
from . import _arrays, _choice, _cuda, _dense, _library, _sparse
from ._calls import RECEIVER, Held, Owned, made
from ._plan import Plan
from ._hints import Array, Device, ElementType, Layout, Matrix, Options, Path, Precision, Stream
from .errors import Unsupported

# Of `checked`: before the first product is there, so that nothing waits until then. The arrays of A stay
# until it is.
LATE = "late"


class Prepared(Held):
    """A in a kernel's own form, from which plan(n) makes any number of plans.

    kernel      name, with the options asked for
    precision   what A's values and B are rounded to
    shape, nnz  of A
    device      "cpu" or the index of the GPU
    stages_ms   what preparation took, in milliseconds; empty where the host does not wait for it
    """

    kernel: str
    precision: Precision
    shape: tuple[int, int]
    nnz: int
    device: str | int
    stages_ms: dict[str, float]

    def __init__(
        self,
        a: Matrix,
        kernel: str = "auto",
        precision: Precision | None = None,
        options: Options | None = None,
        device: Device | None = None,
        library: Path | _library.Library | None = None,
        transposed: bool = False,
        checked: bool | str = True,
    ) -> None:
        a = _sparse.csr_of(a)
        loaded = library if isinstance(library, _library.Library) else _library.load(library)
        if transposed and not loaded.own:
            raise Unsupported(_transposes_nothing(loaded))
        chosen, given = _choice.choose(loaded, kernel, options, device, a)
        _choice.refuse_uncallable(chosen, a)
        self._kernel = chosen
        self.precision = _choice.one_of(
            a.natural_precision if precision is None else precision,
            chosen.precisions,
            "precision",
            chosen.name,
        )
        self.kernel = chosen.name
        if given:
            self.kernel += "?" + "&".join(f"{key}={value}" for key, value in given.items())
        self.shape, self.nnz = a.shape[::-1] if transposed else a.shape, a.nnz
        self.device = _choice.device_for(chosen, a)
        if self.device == "cpu" and a.device != "cpu":
            a = a.on_host()
        if not loaded.own:  # which checks A
            a.validate(ascending=True)
        a = a.fitted(chosen, self.precision)
        if chosen.flags & abi.KEEPS_A:
            self._kept = a
        self._transposed, self._checked = transposed, checked if checked == LATE else bool(checked)
        self._options = _sparse.options_array(given)
        self._options_at = ctypes.addressof(self._options) if given else 0
        self._forms: dict[int, dict] = {}  # of plans for X of so many columns: what they share
        self._prepare(a)

    def turned(self, a: _sparse.Csr) -> Prepared:
        """The transpose, with the values that are in force, prepared alike. a: a Csr of what this was
        prepared from, for a library that does not transpose what it has."""
        if not self._kernel.library.own:
            raise Unsupported(_transposes_nothing(self._kernel.library))
        if not self._kernel.transpose:
            a = a.on_host() if self.device == "cpu" else a
            return self.alike(a.fitted(self._kernel, self.precision), not self._transposed)
        if self.device != "cpu":
            _cuda.require_current(self.device)
        other = Prepared.__new__(Prepared)
        vars(other).update(vars(self), _transposed=not self._transposed, shape=self.shape[::-1])
        other._take(*made(self._kernel, "transpose", self._handle, self._receiver))
        return other

    def alike(self, a: _sparse.Csr, transposed: bool) -> Prepared:
        """Another A, prepared in the same way. a: a Csr as the kernel takes it, on this device."""
        other = Prepared.__new__(Prepared)
        vars(other).update(vars(self))
        other._transposed = transposed
        other.shape, other.nnz = a.shape[::-1] if transposed else a.shape, a.nnz
        other._prepare(a)
        return other

    def way(self, a: _sparse.Csr) -> Prepared | None:
        """What `alike` needs of this, without A; None where another A of the types of `a`, which
        this was prepared from, may need more."""
        if not self._kernel.library.own or a.fitted(self._kernel, self.precision) is not a:
            return None
        other = Prepared.__new__(Prepared)
        vars(other).update(vars(self), _handle=None, stages_ms={})
        return other

    def _prepare(self, a):
        kernel, waits = self._kernel, True
        if self.device != "cpu" and a.device != "cpu":
            if kernel.library.own and a.follows_default_stream():
                waits = self._checked is True
            else:
                _cuda.synchronize()
        self._receiver = RECEIVER if waits else None
        unwaited = abi.CHECKED_LATE if self._checked else abi.UNCHECKED
        flags = (abi.TRANSPOSED if self._transposed else 0) | (0 if waits else unwaited)
        at = ctypes.addressof(a.struct)
        problem = abi.pack_problem(at, self._options_at, abi.PRECISIONS[self.precision], flags)
        self._take(*made(kernel, "prepare", kernel.at, problem, self._receiver))

    def _take(self, handle, stages_ms):
        self._handle, self.stages_ms = handle, stages_ms
        self._owned = Owned(handle, self._kernel.destroy_prepared)

    def plan(self, n: int, layout: Layout = "row", c_type: ElementType | None = None) -> Plan:
        """A Plan for B of K x n and C of M x n.

        layout  "row" or "col": of B and C
        c_type  "fp32", "fp16" or "bf16": what C is stored as; None: as B is, which at precision "fp64"
                is the only type, and "fp32" where B has 8 bits
        """
        return Plan(self, n, layout, c_type)

    def update(self, values: Array, stream: Stream | None = None) -> None:
        """Gives A other values, of the same pattern, in place: all plans multiply by them in calls
        that follow on the stream.

        values  nnz real numbers in the order of A's CSR arrays: of a CSR matrix or a tuple as it was
                given, of another form by row and column. Those on the plan's GPU stay there; the stream
                is found as for B, or `stream`

        Raises Unsupported where the kernel keeps its values: list_kernels() tells which take new ones.
        """
        kernel = self._kernel
        if not kernel.takes_values:
            others = [
                x.name
                for x in kernel.library.kernels.values()
                if x.takes_values and x.device == kernel.device
            ]
            told = f"; {', '.join(others)} take others" if others else ""
            raise Unsupported(f"{kernel.name} keeps the values that A was prepared with{told}")
        x, handle = _sparse.new_values(values, self.nnz, kernel, self.precision, self.device), None
        on_gpu = not isinstance(x, np.ndarray) and _arrays.device_of(x) != "cpu"
        if self.device != "cpu":
            _cuda.require_current(self.device)
            if stream is not None:
                handle = _dense.stream_handle(stream)
            elif on_gpu:
                arrays = _dense.arrays_of(x, "values")
                handle = arrays.stream(arrays.view(x.reshape(1, -1), "values"))
        kernel.library.check(
            kernel.described.replace_values(
                self._handle,
                _arrays.address_of(x),
                _arrays.value_type_of(x, self.precision),
                abi.CUDA if on_gpu else abi.HOST,
                handle,
            )
        )

    def is_symmetric(self) -> bool:
        """Whether A, with its values as they were rounded, equals its transpose. It is looked at where it was
        prepared. False where the library does not say."""
        kernel, told = self._kernel, ctypes.c_int32()
        if not kernel.described.is_symmetric:
            return False
        if self.device != "cpu":
            _cuda.require_current(self.device)
        kernel.library.check(kernel.described.is_symmetric(self._handle, told))
        return told.value != 0

    def __repr__(self):
        rows, cols = self.shape
        return f"<{self.kernel} {self.precision}: A {rows} x {cols}, {self.nnz} nonzero{'' if self.nnz == 1 else 's'}>"


def _transposes_nothing(library):
    return f"{library.path} is a plug-in and transposes nothing: give it A^T"


def prepare(
    a: Matrix,
    kernel: str = "auto",
    precision: Precision | None = None,
    options: Options | None = None,
    device: Device | None = None,
    library: Path | None = None,
    transposed: bool = False,
    checked: bool = True,
) -> Prepared:
    """Brings A into a kernel's own form, once for all shapes.

    a          a scipy.sparse or CuPy sparse matrix, a torch CSR, COO, CSC, BSR or BSC tensor, or a tuple
               (row_ptr, col_idx, values, (rows, cols)) of arrays, on the CPU or on a GPU
    kernel     a name of list_kernels(), options included: "rsh?order=natural"; "auto" predicts which
               is fastest, and on the CPU is the library's CPU kernel
    precision  "fp32", "tf32", "fp16", "bf16", "fp64", "fp8_e4m3" or "fp8_e5m2": what A's values are
               rounded to, and B's type; None: that of A's values, "fp32" for float64, which scipy makes unasked
    options    {key: value}: further options of the kernel
    device     "cuda" or "cpu"; None: where A lies, and for A of scipy or NumPy a GPU where there is
               one
    library    path of another library with the same interface, such as a plug-in
    transposed  True: the product is with A^T, which is made where A lies
    checked    False: torch tensors on a GPU, used on its default stream, are not checked. They must be a
               matrix whose columns ascend in each row; with any other, products read and write anywhere

    Returns a Prepared. Raises InvalidArgument, Unsupported, OutOfMemory, LibraryNotFound.
    """
    return Prepared(a, kernel, precision, options, device, library, transposed, checked)


def plan(
    a: Matrix,
    n: int,
    kernel: str = "auto",
    precision: Precision | None = None,
    layout: Layout = "row",
    c_type: ElementType | None = None,
    options: Options | None = None,
    device: Device | None = None,
    library: Path | None = None,
) -> Plan:
    """A Plan for B of K x n: prepare(...).plan(n, layout, c_type). For several n of one A, call
    prepare once."""
    return prepare(a, kernel, precision, options, device, library).plan(n, layout, c_type)
