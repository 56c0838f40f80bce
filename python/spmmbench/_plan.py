"""plan @ B per call: where B and C may lie, and C = A B."""

from __future__ import annotations

import ctypes
import functools
import math
import threading
import typing

from . import _abi as abi
from . import _arrays, _choice, _cuda, _dense, _fp8, _report
from ._calls import RECEIVER, Held, Owned, Stages, made
from ._hints import Array, ElementType, Layout, Stream
from .errors import InvalidArgument

if typing.TYPE_CHECKING:
    from ._prepared import Prepared

_SECTOR_BYTES = 32  # what the L2 cache of a GPU hands out at once
LINE_BYTES = 128  # what it holds together
_MOST_FORMS = 64  # that are kept, of some 2 KB each


class _Seen(typing.NamedTuple):
    """How a B or a C lay that was checked."""

    form: tuple  # shape, strides, type and device
    extent: int  # bytes from the first to the last element
    gap: int  # bytes behind that which a kernel may touch


class Plan(Held):
    """C = A B for one n, layout and type of C: `plan @ B`, `plan(B, out=C)`, `plan(B, out=C, alpha=2, beta=1)`.

    At precision "fp8_e4m3" B is an Fp8 or an array of float8_e4m3fn, at "fp8_e5m2" the same of float8_e5m2.
    Any other array of torch, NumPy or CuPy is rounded in each call, with a scale of its own, for which the host waits.

    B is K x n, C is M x n, each with lines (rows, or columns in layout "col") that are contiguous and
    start at multiples of `pitch_alignment` bytes. Nothing else is copied. A GPU's work is enqueued on the
    caller's stream: torch's or CuPy's current one, else the stream that the array's interface names,
    or `stream`. After the first call, and with `auto` after `settle()`, it allocates nothing but the
    result, so that it can be captured in a CUDA graph. Of threads that call one plan at the same time, each waits for the one
    before. Calls on two streams must not overlap: a plan has one workspace.
    """

    prepared: Prepared
    n: int
    layout: Layout
    c_type: ElementType
    device: str | int
    shape: tuple[int, int]  # of C
    shape_of_b: tuple[int, int]
    plain: bool  # on a GPU, C of B's type, rows that are whole cache lines: B and C need no gaps between them
    stages_ms: dict[str, float]
    b_type: typing.Any  # the name of an element type
    _asked: abi.Shape
    _of_b: tuple
    _of_c: tuple
    _limited: bool
    _library: typing.Any
    _launch: typing.Any

    def __init__(
        self, prepared: Prepared, n: int, layout: Layout = "row", c_type: ElementType | None = None
    ) -> None:
        usual = type(n) is int and layout == "row" and c_type is None
        form = prepared._forms.get(n) if usual else None
        if form is None:
            form = self._form(prepared, n, layout, c_type)
            if usual and len(prepared._forms) < _MOST_FORMS:
                prepared._forms[n] = form
        vars(self).update(form)
        kernel = prepared._kernel
        if self._limited:
            _choice.check_n(kernel, prepared.shape[1], self.n)
        self.prepared = prepared
        rows, cols = prepared.shape
        self.shape, self.shape_of_b = (rows, self.n), (cols, self.n)
        self._check_device()
        arguments = prepared._handle, ctypes.addressof(self._asked), prepared._receiver
        self._handle, self.stages_ms = made(kernel, "bind", *arguments)
        self._owned = Owned(self._handle, kernel.destroy_plan, prepared._owned)
        self._lock = threading.Lock()  # of what a call changes: _seen, _b, _c, the workspace
        self._seen: dict[str, _Seen] = {}  # the last B and the last C
        self._b = abi.Dense.from_buffer_copy(abi.pack_dense(0, cols, *self._of_b))
        self._c = abi.Dense.from_buffer_copy(abi.pack_dense(0, rows, *self._of_c))

    @functools.cached_property
    def _ld_of_c(self):
        return self._pitch(self.n if self.layout == "row" else self.shape[0], self.c_type)

    @staticmethod
    def _form(prepared, n, layout, c_type):
        """The members of a plan that do not depend on A."""
        kernel, n, b_type = prepared._kernel, _choice.columns(n), abi.ELEMENT_OF[prepared.precision]
        usual = "fp32" if b_type in abi.EIGHT_BITS else b_type
        _choice.check_n(kernel, prepared.shape[1], n)
        layout = _choice.one_of(layout, kernel.layouts, "layout", kernel.name)
        c_type = _choice.one_of(usual if c_type is None else c_type, kernel.c_types, "c_type", kernel.name)
        of_kernel = max(kernel.struct.pitch_alignment, 1)
        on_gpu = prepared.device != "cpu" and kernel.library.own and layout == "row"
        return {
            "n": n,
            "layout": layout,
            "b_type": b_type,
            "c_type": c_type,
            "data_alignment": max(kernel.struct.data_alignment, 1),
            "pitch_alignment": 1 if n == 1 and layout == "col" else of_kernel,
            "device": prepared.device,
            "tensor_core_sums": kernel.tensor_core_sums and prepared.precision not in ("fp32", "fp64"),
            "_asked": abi.Shape(n, abi.LAYOUTS[layout], abi.ELEMENTS[c_type]),
            "_of_b": (n, 0, abi.LAYOUTS[layout], abi.ELEMENTS[b_type], 0.0),  # behind its rows
            "_of_c": (n, 0, abi.LAYOUTS[layout], abi.ELEMENTS[c_type], 0.0),
            "_limited": kernel.described.max_kn > 0,  # for some A
            "plain": on_gpu and usual == c_type == b_type and n * abi.ELEMENT_BYTES[b_type] % LINE_BYTES == 0,
            "_library": kernel.library,
            "_launch": kernel.launch,
        }

    def __matmul__(self, b: Array) -> Array:
        return self(b)

    def in_use(self) -> threading.Lock:
        """A context in which calls of other threads wait."""
        return self._lock

    def __call__(
        self,
        b: Array,
        out: Array | None = None,
        stream: Stream | None = None,
        alpha: float = 1.0,
        beta: float = 0.0,
    ) -> Array:
        """C = alpha A B + beta C, with fp32 scalars but for "fp64". Returns C: `out`, or a new array of
        B's library. With other scalars most kernels multiply into memory of the plan first, in C's type.

        Raises InvalidArgument for what does not fit, before anything is launched, and what the kernel reports.
        """
        if type(alpha) is not float or type(beta) is not float:
            alpha, beta = _choice.number("alpha", alpha), _choice.number("beta", beta)
        if beta != 0 and out is None:
            raise InvalidArgument("beta: expected 0, or the C that it multiplies as `out`")
        with self._lock:
            return self._multiply(b, out, stream, alpha, beta)

    def _multiply(self, b, out, stream, alpha, beta):
        if self.b_type in abi.EIGHT_BITS:
            b, self._b.scale, _ = self.eight_bits(b)
        arrays = _dense.arrays_of(b)
        view = arrays.view(b, "B")
        self._place(self._b, arrays, view, self.b_type, "B")
        if out is None:
            out = self._make(arrays, self.shape[0], self._ld_of_c, self.c_type, view)
            self._seen.pop("C", None)
            self._c.ld = self._ld_of_c
            self._point(self._c, _arrays.address_of(out), "C")
        else:
            self._place_out(view, out)
        handle = None
        if self.device != "cpu":
            self._check_device()
            handle = arrays.stream(view) if stream is None else _dense.stream_handle(stream)
        elif stream is not None:
            raise InvalidArgument("a stream is given; a plan on the CPU has none")
        self._enqueue(handle, alpha, beta)
        return out

    def _enqueue(self, stream, alpha=1.0, beta=0.0):
        scalars = () if (alpha, beta) == (1, 0) else (alpha, beta)
        launch = self.prepared._kernel.launch_scaled() if scalars else self._launch
        b, c = ctypes.addressof(self._b), ctypes.addressof(self._c)
        status = launch(self._handle, b, c, *scalars, stream)
        if status != abi.OK:
            self._library.check(status)

    def launch_at(self, b: int, c: int, stream: int | None) -> None:
        """C = A B where both lie at these addresses, in row-major order without gaps, and are as the
        plan wants them, as the caller knows: nothing is checked."""
        with self._lock:
            self._seen.clear()
            self._b.data, self._c.data = b, c
            self._b.ld = self._c.ld = self.n
            status = self._launch(self._handle, ctypes.addressof(self._b), ctypes.addressof(self._c), stream)
        if status != abi.OK:
            self._library.check(status)

    def eight_bits(self, b: Array) -> _fp8.Fp8:
        """B as an Fp8: as it is, or rounded into a new array that a call takes as it is."""
        rounded = _fp8.fp8(b, self.b_type)
        if (held := _fp8.type_of(rounded)) != self.b_type:
            raise InvalidArgument(f"B holds {held}; {self.b_type} is wanted")
        if not _fp8.is_stored(b):
            values = self.empty_b(rounded.values)
            values[...] = rounded.values
            rounded = rounded._replace(values=values)
        return rounded

    def _place_out(self, b, out):
        arrays = _dense.arrays_of(out, "C")
        target = arrays.view(out, "C")
        self._place(self._c, arrays, target, self.c_type, "C")
        apart = target.data - b.data
        if -self._seen["C"].extent < apart < self._seen["B"].extent and self._overlap(apart):
            raise InvalidArgument("C overlaps B; memory of its own is wanted")

    def settle(self) -> Plan:
        """Prepares at once what calls would prepare later (`auto`), so that they only multiply: before a CUDA
        graph is captured, or calls are timed. The GPU's work is done when it returns. Returns the plan."""
        settle = self.prepared._kernel.described.settle
        if not settle:
            return self
        stages = Stages(self.prepared._kernel)
        with self._lock:
            self._check_device()
            stages.of(settle, self._handle, RECEIVER)
            for stage, ms in stages.checked().items():
                self.stages_ms[stage] = self.stages_ms.get(stage, 0.0) + ms
        return self

    def update(self, values: Array, stream: Stream | None = None) -> None:
        """Gives A other values: Prepared.update. All plans of one `prepare` get them."""
        with self._lock:
            self.prepared.update(values, stream)

    def empty_b(self, like: Array) -> Array:
        """A new K x n array of the library, and on the device, of the array `like`, aligned as B
        should be: on a GPU, rows longer than a sector of the L2 cache start at one, and at a cache
        line where one sector more leads there. Sparse products read such rows faster. Values are
        not set."""
        return self._empty(self.prepared.shape[1], self.b_type, like, gathered=True)

    def empty_c(self, like: Array) -> Array:
        """The same for C: M x n."""
        return self._empty(self.prepared.shape[0], self.c_type, like)

    def report(self) -> dict[str, typing.Any]:
        """What the plan tells of itself, under the names of the fields of a result: kernel, precision, n,
        layout, c_type, device_bytes, bytes_to_host (what preparation and this plan copied from the GPU),
        params, issued_flops, format (or None) and stages_ms, what preparation and this plan took."""
        return _report.of(self)

    def __repr__(self):
        return f"<plan n={self.n} {self.layout} {self.c_type} of {self.prepared!r}>"

    def _pitch(self, length, kind, gathered=False):
        """Elements from one line of `length` to the next. `gathered`: as `empty_b` makes them."""

        def padded(step):
            return -(-length * size // step) * step

        size = abi.ELEMENT_BYTES[kind]
        pitch = padded(self.pitch_alignment)
        if gathered and self.pitch_alignment > 1 and pitch > _SECTOR_BYTES:
            pitch = padded(math.lcm(self.pitch_alignment, _SECTOR_BYTES))
            if pitch % LINE_BYTES == LINE_BYTES - _SECTOR_BYTES:
                pitch += _SECTOR_BYTES
        return pitch // size

    def _empty(self, rows, kind, like, gathered=False):
        arrays = _dense.arrays_of(like, "the array")
        ld = self._pitch(self.n if self.layout == "row" else rows, kind, gathered)
        return self._make(arrays, rows, ld, kind, arrays.view(like, "the array"))

    def _make(self, arrays, rows, ld, kind, view):
        lines, length = (rows, self.n) if self.layout == "row" else (self.n, rows)
        made = arrays.empty(lines, ld, kind, view)
        if ld != length:
            made = made[:, :length]
        return made if self.layout == "row" else made.T

    def _check_device(self):
        if self.device != "cpu":
            _cuda.require_current(self.device)

    def _point(self, dense, address, name):
        if address % self.data_alignment != 0:
            raise InvalidArgument(
                f"{name} begins at an address that is no multiple of {self.data_alignment}"
            )
        dense.data = address

    def _place(self, dense, arrays, view, kind, name):
        """Fills in where an array lies, after checking that it may lie so."""
        self._point(dense, view.data, name)
        form, seen = view[1:5], self._seen.get(name)
        if seen is None or form != seen.form:
            dense.ld = self._pitch_of(dense, view, kind, name)
            lines, length, pitch = self._lines(dense)
            extent = (lines - 1) * pitch + length if lines and length else 0
            gap = self._gap(length, pitch) if extent else 0
            seen = self._seen[name] = _Seen(form, extent, gap)
        if seen.gap:
            self._check_end(arrays, view, name)

    def _gap(self, length, pitch):
        """Bytes behind a line that a kernel may read in B and overwrite in C, as plugin.h says."""
        if not self._library.own:
            return pitch - length
        if self.pitch_alignment == 1:  # on the CPU, and of a single column
            return 0
        return min(pitch, -(-length // LINE_BYTES) * LINE_BYTES) - length

    def _check_end(self, arrays, view, name):
        """Refuses an array where what a kernel may touch behind the last line is not its memory."""
        _, extent, gap = self._seen[name]
        last, end = view.data + extent, arrays.end(view.keep)
        if end is None:
            end = last + -extent % self.pitch_alignment
        if last + gap > end:
            raise InvalidArgument(
                f"{gap} bytes behind the last line of {name} may be "
                f"{'read' if name == 'B' else 'overwritten'}, and its memory ends before: "
                f"it must reach so far, as in empty_{name.lower()}()"
            )

    def _lines(self, dense):
        """How many, and the bytes of one and from one to the next."""
        size = abi.ELEMENT_BYTES[abi.NAME_OF_ELEMENT[dense.type]]
        lines, length = dense.rows, dense.cols
        if self.layout == "col":
            lines, length = length, lines
        return lines, length * size, dense.ld * size

    def _overlap(self, apart):
        """Whether C, `apart` bytes behind B, shares elements with it; the bytes from the first to
        the last element of one do with those of the other."""
        if not self._seen["B"].extent or not self._seen["C"].extent:
            return False
        (b_lines, b_length, pitch), (c_lines, c_length, c_pitch) = map(
            self._lines, (self._b, self._c)
        )
        if pitch != c_pitch or b_lines == 1 or c_lines == 1:
            return True
        place = apart % pitch  # of C in a line of B: both may be columns of one wider array
        return place < b_length or place + c_length > pitch

    def _pitch_of(self, dense, view, kind, name):
        """Elements from one line of an array to the next, after all checks but of its address."""
        rows, cols = dense.rows, dense.cols
        if view.shape != (rows, cols):
            raise InvalidArgument(
                f"{name} is {view.shape[0]} x {view.shape[1]}; {rows} x {cols} is wanted"
            )
        if not _dense.holds(view, kind):
            raise InvalidArgument(f"{name} holds {view.type}; {kind} is wanted")
        if view.device != self.device and view.device is not None:
            places = [
                "the CPU" if place == "cpu" else f"GPU {place}"
                for place in (view.device, self.device)
            ]
            raise InvalidArgument(f"{name} lies on {places[0]}; the plan is for {places[1]}")
        if view.device is None and self.device == "cpu":
            raise InvalidArgument(f"{name} lies on a GPU; the plan is for the CPU")
        row_major = self.layout == "row"
        step, ld = view.strides[::-1] if row_major else view.strides
        lines, length = (rows, cols) if row_major else (cols, rows)
        size = abi.ELEMENT_BYTES[kind]
        if rows == 0 or cols == 0:  # libraries give the strides of nothing any value
            return self._pitch(length, kind)
        if lines == 1:  # whose stride may be anything; it matters where the kernel needs a gap
            ld = length if length * size % self.pitch_alignment == 0 else max(ld, length)
        if (step != 1 and length > 1) or ld < length:
            raise InvalidArgument(
                f"{name} has strides {tuple(view.strides)}; "
                f"{'rows' if row_major else 'columns'} must be contiguous and apart "
                f"(layout '{self.layout}')"
            )
        pitch = ld * size
        gaps_written = self.pitch_alignment > 1 or not self._library.own
        if name == "C" and gaps_written and ld > self._pitch(length, kind):
            raise InvalidArgument(
                f"lines of C start {pitch} bytes apart, and what lies between them would be "
                "overwritten: C is an array of its own, as in empty_c()"
            )
        if pitch % self.pitch_alignment != 0:
            raise InvalidArgument(
                f"lines of {name} start {pitch} bytes apart; a multiple of {self.pitch_alignment} "
                f"is wanted, as in empty_{name.lower()}()"
            )
        return ld
