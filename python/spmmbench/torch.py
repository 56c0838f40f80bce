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
from . import _choice, _library, _sparse
from ._attention import AttentionBlocks, block_attention
from ._hints import Device, Matrix, Options, Path, Precision
from ._plan import Plan
from ._products import Multiplier
from ._swiglu import BlockSwiglu
from .errors import InvalidArgument

__all__ = ["AttentionBlocks", "BlockSwiglu", "DistributedMatrix", "SparseMatrix", "block_attention"]


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
    """The kernel with a number of calls."""
    return kernel + ("&" if "?" in kernel else "?") + f"calls={calls}"


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
        others = None
        if by_width:
            most = max(by_width.values())
            others = {width: _told(kernel, count) for width, count in by_width.items() if count != most}
            kernel = _told(kernel, most)
        asked = (kernel, precision, options, device, library)
        self._wrap(Multiplier(csr, asked, transposed, checked, kernels=others))

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
