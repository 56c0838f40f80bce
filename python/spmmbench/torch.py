"""Sparse products in PyTorch models: C = A X with gradients of X.

    from spmmbench.torch import SparseMatrix
    a = SparseMatrix(adjacency, precision="fp16")   # scipy.sparse or a sparse torch tensor
    y = a @ x                                       # backward: A^T times the gradient of y
    y = a(x, values)                                # other values of A, which get a gradient too

Without `values` A is a constant. A^T is made and prepared by the first product whose X requires a
gradient; where it equals A, the same prepared form serves both. Plans are kept, one for each width of X.

In a job of torch.distributed, DistributedMatrix divides A, X and C by rows among the ranks:

    a = DistributedMatrix(adjacency, precision="fp16")
    y = a @ x[a.rows_of_x]                          # this rank's rows of A x

Attention over the blocks of keys that a pattern keeps, without gradients:

    y = block_attention(q, k, v, AttentionBlocks(kept, 128))

The gated half of a feed-forward with block-sparse weights, without gradients:

    y = BlockSwiglu(gate, up)(x)                    # silu(x gate^T) * (x up^T)
"""

from __future__ import annotations

import collections.abc
import weakref

import numpy as np
import torch
import torch.distributed

from . import _abi as abi
from . import _choice, _cuda, _dense, _library, _sparse
from ._abi import EIGHT_BITS, ELEMENT_BYTES, ELEMENT_OF, ELEMENT_TYPES
from ._attention import AttentionBlocks, block_attention
from ._hints import Device, Matrix, Options, Path, Precision
from ._plan import LINE_BYTES, Plan
from ._prepared import LATE, Prepared
from ._swiglu import BlockSwiglu
from .errors import Error, InvalidArgument

__all__ = ["AttentionBlocks", "BlockSwiglu", "DistributedMatrix", "SparseMatrix", "block_attention"]

_DTYPE_OF = {  # of a precision
    name: getattr(torch, ELEMENT_TYPES[element].dtype, torch.uint8) for name, element in ELEMENT_OF.items()
}
# Takes a fifth of asking the driver.
_current_device = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)


class _Product(torch.autograd.Function):
    """C = A X. Its gradient is the product of A^T, so that it can be differentiated again."""

    @staticmethod
    def forward(ctx, matrix, x):
        ctx.matrix, ctx.transpose, ctx.plain = matrix, None, None
        c = matrix.multiply(x)
        # While the GPU multiplies. The thread of backward passes has nothing of this code in its caches,
        # and would take several times as long.
        try:
            ctx.transpose = matrix.transposed()
            ctx.plain = ctx.transpose.plain(c.shape[1])
        except Error:  # which the backward pass raises
            pass
        return c

    @staticmethod
    def backward(ctx, gradient):
        plain, transpose = ctx.plain, ctx.transpose
        if plain is not None and transpose.own_values and not torch.is_grad_enabled() and plain.takes(gradient):
            return None, plain(gradient)
        return None, (transpose or ctx.matrix.transposed()).product(gradient)


class _ProductOfValues(torch.autograd.Function):
    """C = A X with other values of A. Their gradient is the product of C's gradient and X^T, sampled
    where A has entries."""

    @staticmethod
    def forward(ctx, matrix, values, x):
        ctx.matrix = matrix
        ctx.save_for_backward(values, x)
        matrix.own_values = False
        matrix.prepared.update(values)
        return matrix.multiply(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        values, x = ctx.saved_tensors
        of_values = of_x = None
        if ctx.needs_input_grad[1]:
            of_values = ctx.matrix.sampled_product(gradient, x).to(values.dtype)
        if ctx.needs_input_grad[2]:
            transpose = ctx.matrix.transposed_pattern()
            transpose.prepared.update(values)
            of_x = transpose.multiply(gradient)
        return None, of_values, of_x


class _PlainProduct:
    """C = A X of a plan on a GPU for X that need no more checks than those of `takes`: contiguous,
    with rows that are whole cache lines. Little code, since a new plan, and above all a backward pass,
    runs it from memory."""

    __slots__ = ("_device", "_dtype", "_plan", "_shape_of_x")

    @classmethod
    def of(cls, plan, dtype):
        """None where the plan wants more."""
        whole = plan.n * ELEMENT_BYTES[plan.b_type] % LINE_BYTES == 0
        own = plan.device != "cpu" and plan.prepared._kernel.library.own
        if not own or not whole or plan.c_type != plan.b_type:
            return None
        made = cls()
        made._plan, made._device, made._dtype = plan, plan.device, dtype
        made._shape_of_x = (plan.prepared.shape[1], plan.n)
        return made

    def takes(self, x):
        return (
            x.shape == self._shape_of_x
            and x.dtype is self._dtype
            and x.get_device() == self._device
            and x.is_contiguous()
            and not x.is_neg()
            and x.data_ptr() % self._plan.data_alignment == 0
        )

    def __call__(self, x):
        plan, device = self._plan, self._device
        if _current_device() != device:
            _cuda.require_current(device)
        out = x.new_empty(plan.shape)
        plan.launch_at(x.data_ptr(), out.data_ptr(), _dense.torch_stream(device))
        return out


def _asked_for(a, kernel, options, device, library, calls):
    """(A, calls): A on the GPU where the kernel takes it there, since all that is made of it is made there
    sooner; {width: calls}, empty where the kernel does not choose by them."""
    if calls is None and a.device != "cpu":
        return a, {}
    by_width = {} if calls is None else {None: calls}
    if isinstance(calls, collections.abc.Mapping):
        by_width = {_choice.columns(width): count for width, count in calls.items()}
    if any(type(count) is not int or count < 1 for count in by_width.values()):
        raise InvalidArgument(f"calls is {calls!r}; a positive integer, or one for each width, is wanted")
    loaded = library if isinstance(library, _library.Library) else _library.load(library)
    chosen, _ = _choice.choose(loaded, kernel, options, device, a)
    takes_there = chosen.device == "cuda" and loaded.own and chosen.struct.a_memory >> abi.CUDA & 1
    if a.device == "cpu" and takes_there and torch.cuda.is_available():
        a = a.on_gpu()
    chooses = chosen.device == "cuda" and chosen.name == "auto"
    return a, by_width if chooses else {}


def _told(kernel, calls):
    """The kernel with a number of calls, if there is one."""
    return kernel if calls is None else kernel + ("&" if "?" in kernel else "?") + f"calls={calls}"


_AT_ONCE = ("auto", "csr_merge")  # kernels whose first product reads A as it is given
_ways: dict[tuple, Prepared | None] = {}  # in which A that preparation does not wait for were prepared, by what they have in common


def _prepared(a, asked, turned, checked):
    """A, or A^T. Where nothing waits for A, what does not depend on its arrays and sizes is found out once."""
    kernel, precision, options, device, library = asked
    named = all(x is None or type(x) is str for x in (kernel, precision, device, library))
    there = torch.is_tensor(a.values) and not a.values.is_cpu
    if not named or options is not None or not there or (checked and kernel not in _AT_ONCE):
        return Prepared(a, *asked, turned, checked)
    checked = LATE if checked else False
    known = (kernel, precision, device, library, a.device, a.values.dtype, checked)
    way = _ways.get(known)
    if way is not None and way.device == _current_device():
        return way.alike(a, turned)
    prepared = Prepared(a, *asked, turned, checked)
    _ways[known] = prepared.way(a)
    return prepared


class _Matrix:
    """What is prepared of A, or of A^T where `turned`, and its plans. No module, since making one takes
    as long as half of what else Python does for a new A."""

    def __init__(self, a, asked, turned, checked, prepared=None, kernels=None):
        self.prepared = prepared or _prepared(a, asked, turned, checked)
        self._kernels = kernels or {}  # of a width, where another number of calls was told of it
        self._others = {}  # A as they prepared it
        self.shape = self.prepared.shape
        self.own_values = True  # those of A are in force
        self.module = None  # a weak reference to its SparseMatrix
        self._a, self._asked, self._turned, self._checked = a, asked, turned, checked
        self._dtype = _DTYPE_OF[self.prepared.precision]
        self._plans = {}
        self._plain = {}  # products of them, or None
        self._transpose = None  # of A; of A^T a weak reference to A, so that no cycle keeps both
        self._of_values = None  # A^T with the values of product(X, values)
        self._rows = None  # of A's entries

    def plan(self, n):
        if n not in self._plans:
            plan = self._plans[n] = self._prepared_for(n).plan(n)
            self._plain[n] = _PlainProduct.of(plan, self._dtype)
        return self._plans[n]

    def _prepared_for(self, n):
        """A as the kernel has prepared it that multiplies X of n columns."""
        kernel = self._kernels.get(n)
        if kernel is None:
            return self.prepared
        if kernel not in self._others:
            asked = (kernel, *self._asked[1:])
            self._others[kernel] = _prepared(self._a, asked, self._turned, self._checked)
        return self._others[kernel]

    def plain(self, n):
        """The _PlainProduct of the plan for X of K x n, or None; makes the plan."""
        self.plan(n)
        return self._plain[n]

    def transposed(self):
        known = self._transpose
        if isinstance(known, weakref.ref):
            known = known()
        if known is not None:
            return known
        on_gpu = self._a.device != "cpu" and self.prepared._kernel.library.own
        if on_gpu and self._checked and not self._turned and self.shape[0] == self.shape[1]:
            self._restore()
            if self.prepared.is_symmetric():
                self._transpose = weakref.ref(self)
                return self
        if self._turned or on_gpu:
            other = self._alike(self.prepared.turned(self._a))
        else:
            transpose = self._a.transposed()
            if transpose.same_as(self._a):
                self._transpose = weakref.ref(self)
                return self
            other = _Matrix(transpose, self._asked, False, self._checked, kernels=self._kernels)
        other._transpose = weakref.ref(self)
        self._transpose = other
        return other

    def _alike(self, prepared):
        """A^T, prepared."""
        return _Matrix(self._a, self._asked, not self._turned, self._checked, prepared, self._kernels)

    def transposed_pattern(self):
        if self._of_values is None:
            self._of_values = self._alike(self.prepared.turned(self._a))
        return self._of_values

    def sampled_product(self, gradient, x):
        """The dot products of the rows of C's gradient and of X that meet in A's entries, in fp32."""
        most = 1 << 24  # elements that are multiplied at a time
        cols = torch.as_tensor(self._a.col_idx, device=x.device)
        if self._rows is None:
            lengths = torch.as_tensor(self._a.row_ptr, device=x.device).diff()
            self._rows = torch.arange(len(lengths), device=x.device).repeat_interleave(lengths)
        kind = torch.float64 if x.dtype is torch.float64 else torch.float32
        out = torch.empty(len(cols), dtype=kind, device=x.device)
        step = max(1, most // max(1, x.shape[1]))
        of_c, of_x = (cols, self._rows) if self._turned else (self._rows, cols)
        for first in range(0, len(cols), step):
            part = slice(first, first + step)
            left = gradient.index_select(0, of_c[part]).to(kind)
            torch.sum(left * x.index_select(0, of_x[part]).to(kind), 1, out=out[part])
        return out

    def product(self, x, values=None):
        """With gradients where they are asked for."""
        if values is not None:
            return _ProductOfValues.apply(self, values, x)
        self._restore()
        if torch.is_grad_enabled() and x.requires_grad:
            return _Product.apply(self, x)
        return self.multiply(x)

    def _restore(self):
        """Puts A's own values in force."""
        if not self.own_values:
            self.prepared.update(self._a.values)
            self.own_values = True

    def multiply(self, x):
        if x.dim() != 2 or x.shape[0] != self.shape[1]:
            raise InvalidArgument(f"X is {tuple(x.shape)}; {self.shape[1]} x n is wanted")
        plan = self.plan(x.shape[1])
        if x.dtype is not self._dtype:
            if self.prepared.precision in EIGHT_BITS:
                return plan(x.detach().resolve_neg())  # which rounds it
            raise InvalidArgument(f"X is {x.dtype}; {self._dtype} is wanted")
        plain = self._plain[plan.n]
        if plain is not None and plain.takes(x):
            return plain(x)
        x = x.resolve_neg()
        pitch = x.stride(0) * x.element_size()
        overlap = x.shape[0] > 1 and x.stride(0) < x.shape[1]  # such as one row expanded
        misplaced = pitch % plan.pitch_alignment or x.data_ptr() % plan.data_alignment
        if x.stride(1) != 1 or overlap or misplaced or _ends_early(x, plan):
            x = plan.empty_b(x).copy_(x)
        return plan(x)


class SparseMatrix(torch.nn.Module):
    """A sparse M x K matrix A, as a module: forward(X), or `a @ X`, gives A X.

    forward(X, values) multiplies by other values of A's entries, a tensor in the order of
    spmmbench.Plan.update, and gives X and the values gradients, which have no second derivatives.

    a          as spmmbench.prepare takes it; prepared where the calling thread's current device is
    kernel, precision, options, library   as for spmmbench.prepare
    checked    likewise; a torch tensor on a GPU, used on its default stream, may be checked while the GPU
               multiplies: then the first product (or its gradient, or settle) raises what is wrong, and
               all that follow, and A's arrays stay as they are until it returns
    calls      about how many products of a width are to come, of A and of A^T each, or {width: so many},
               the most of which hold for all others: "auto" on a GPU then prepares what pays within them,
               all of it when a plan is made

    X is K x n, of the precision's type (fp32 for tf32), on A's device; the result is M x n of the
    same type. At precision "fp8_e4m3" or "fp8_e5m2" X may have any type and is rounded with a scale of its
    own, as gradients are, unless it has that type; the result is fp32. Rows of X must be contiguous, apart, and start at multiples of 16 bytes: an X whose
    rows are not is copied, such as the gradient of a sum, and so is one whose memory ends where a
    kernel may still read. Raises what spmmbench.prepare and plans raise.
    """

    def __init__(
        self,
        a: Matrix,
        kernel: str = "auto",
        precision: Precision | None = None,
        options: Options | None = None,
        device: Device | None = None,
        library: Path | None = None,
        transposed: bool = False,
        checked: bool = True,
        calls: int | collections.abc.Mapping[int, int] | None = None,
    ) -> None:
        csr = _sparse.csr_of(a)
        if torch.is_tensor(a) and a.requires_grad:
            raise InvalidArgument("A requires a gradient: give its values to forward(X, values)")
        csr, by_width = _asked_for(csr, kernel, options, device, library, calls)
        most = max(by_width.values(), default=None)
        others = {width: _told(kernel, count) for width, count in by_width.items() if count != most}
        asked = (_told(kernel, most), precision, options, device, library)
        self._wrap(_Matrix(csr, asked, transposed, checked, kernels=others))

    def _wrap(self, matrix):
        super().__init__()
        # No parameter: Module looks at each of them for some microseconds.
        vars(self).update(_matrix=matrix, prepared=matrix.prepared)
        matrix.module = weakref.ref(self)

    def __deepcopy__(self, memo):
        """Itself: A is constant, so a copy of a model shares it."""
        return self

    @property
    def shape(self) -> tuple[int, int]:
        return self._matrix.shape

    def plan(self, n: int) -> Plan:
        """The plan for X of K x n, made at the first call."""
        return self._matrix.plan(_choice.columns(n))

    def settle(self, *widths: int) -> None:
        """Prepares at once what products of X with so many columns and their gradients would prepare
        later: Plan.settle, of A and A^T. Before a CUDA graph is captured."""
        checked = [_choice.columns(n) for n in widths]
        for matrix in (self._matrix, self._matrix.transposed()):
            for n in checked:
                matrix.plan(n).settle()

    def transposed(self) -> SparseMatrix:
        """A^T as such a matrix, made at the first call."""
        matrix = self._matrix.transposed()
        known = matrix.module and matrix.module()
        if known is None:
            known = SparseMatrix.__new__(SparseMatrix)
            known._wrap(matrix)
        return known

    def forward(self, x: torch.Tensor, values: torch.Tensor | None = None) -> torch.Tensor:
        if not torch.is_tensor(x):
            raise InvalidArgument(f"X is a {type(x).__name__}; a torch tensor is wanted")
        if x.layout is not torch.strided or x.is_nested:
            raise InvalidArgument("X is a sparse or nested tensor; a dense one is wanted")
        if values is not None and not torch.is_tensor(values):
            raise InvalidArgument(f"values are a {type(values).__name__}; a torch tensor is wanted")
        if values is not None and values.requires_grad and values.device != x.device:
            raise InvalidArgument(f"values require a gradient and lie on {values.device}, X on {x.device}")
        return self._matrix.product(x, values)

    def __matmul__(self, x: torch.Tensor) -> torch.Tensor:
        return self(x)

    def extra_repr(self) -> str:
        return repr(self.prepared)


class _DividedProduct(torch.autograd.Function):
    """A rank's rows of A X. Its own rows of X are multiplied while those of the others arrive; in the
    backward pass what the others' rows get is sent while that of its own is made."""

    @staticmethod
    def forward(ctx, near, far, group, own):
        ctx.near, ctx.far, ctx.group = near, far, group
        every = own.new_empty((far.shape[1], own.shape[1]))
        arrival = torch.distributed.all_gather_into_tensor(every, own, group=group, async_op=True)
        c = near.multiply(own)
        arrival.wait()
        return c.add_(far.multiply(every))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        every = ctx.far.transposed().multiply(gradient)
        from_others = every.new_empty((ctx.near.shape[1], every.shape[1]))
        arrival = torch.distributed.reduce_scatter_tensor(from_others, every, group=ctx.group, async_op=True)
        own = ctx.near.transposed().multiply(gradient)
        arrival.wait()
        return None, None, None, own.add_(from_others)


def _entries(csr, kept, first, columns, on_gpu):
    """Of a scipy matrix the entries where `kept` is true, with columns counted from `first`, as
    SparseMatrix takes them; on the GPU, so that all is made there."""
    row_ptr = np.concatenate(([0], np.cumsum(kept)))[csr.indptr]
    arrays = (row_ptr, csr.indices[kept] - first, csr.data[kept])
    if on_gpu:
        arrays = (torch.as_tensor(x).cuda() for x in arrays)
    return (*arrays, (csr.shape[0], columns))


class DistributedMatrix(torch.nn.Module):
    """A constant sparse matrix A, M x K, divided by rows among the ranks of a process group: `a @ X`
    gives this rank's rows of A X, from its rows of X. All ranks have all of X gathered in each
    product, and its gradient scattered in each backward pass; every rank calls both.

    a       as SparseMatrix takes it, the whole, alike on every rank
    group   of torch.distributed; None: its default group. Initialised before, with NCCL for GPUs
    **how   kernel, precision, options, device, library of SparseMatrix

    rows, rows_of_x   this rank's rows of A and C, and of X, as slices; each but the last rank has as
    many as the others. The columns of A that meet this rank's rows of X are multiplied apart from the
    others, and both results, of C's type, added. Raises what SparseMatrix raises.
    """

    def __init__(self, a: Matrix, group: torch.distributed.ProcessGroup | None = None, **how) -> None:
        super().__init__()
        self._group = group
        ranks, rank = torch.distributed.get_world_size(group), torch.distributed.get_rank(group)
        csr = _sparse.csr_of(a)
        self.shape = tuple(csr.shape)
        blocks = [-(-size // ranks) for size in self.shape]
        self.rows, self.rows_of_x = (
            slice(min(rank * block, size), min((rank + 1) * block, size))
            for block, size in zip(blocks, self.shape)
        )
        own = csr.on_host().to_scipy()[self.rows].tocsr()
        how["precision"] = how.get("precision") or csr.natural_precision
        near, on_gpu = own.indices // blocks[1] == rank, how.get("device") == "cuda"
        self._near, self._far = (
            SparseMatrix(_entries(own, kept, first, columns, on_gpu), **how)
            # Rows of X are gathered with what fills up those of the last ranks.
            for kept, first, columns in ((near, rank * blocks[1], blocks[1]), (~near, 0, ranks * blocks[1]))
        )

    def settle(self, n: int) -> None:
        """Prepares at once what products of X with n columns and their gradients would prepare later:
        Plan.settle."""
        for part in (self._near, self._far):
            part.settle(n)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.rows_of_x.stop - self.rows_of_x.start
        if not torch.is_tensor(x) or x.dim() != 2 or x.shape[0] != rows:
            raise InvalidArgument(f"expected this rank's {rows} rows of X as a tensor")
        missing = self._near.shape[1] - rows
        if missing > 0:
            x = torch.nn.functional.pad(x, (0, 0, 0, missing))
        return _DividedProduct.apply(self._near._matrix, self._far._matrix, self._group, x.contiguous())

    def __matmul__(self, x: torch.Tensor) -> torch.Tensor:
        return self(x)


def _ends_early(x, plan):
    """Whether x's memory ends where a kernel may still read."""
    pitch, length = x.stride(0) * x.element_size(), x.shape[1] * x.element_size()
    gap = plan._gap(length, pitch)
    read = (x.shape[0] - 1) * pitch + length + gap
    return gap > 0 and x.data_ptr() + read > _dense.TorchArrays.end(x)
