"""Sparse products in PyTorch models: C = A X with gradients of X.

    from spmmbench.torch import SparseMatrix
    a = SparseMatrix(adjacency, precision="fp16")   # scipy.sparse or a sparse torch tensor
    y = a @ x                                       # backward: A^T times the gradient of y

A is a constant: it gets no gradient. A^T is made and prepared at the first backward pass; where it
equals A, the same prepared form serves both. Plans are kept, one for each width of X.
"""

import weakref

import torch

from . import _dense, _sparse
from ._plan import Prepared
from .errors import InvalidArgument

__all__ = ["SparseMatrix"]

_DTYPE_OF = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp64": torch.float64,
}


class _Product(torch.autograd.Function):
    """C = A X. Its gradient is the product of A^T, so that it can be differentiated again."""

    @staticmethod
    def forward(ctx, matrix, x):
        ctx.matrix = matrix
        return matrix._multiply(x)

    @staticmethod
    def backward(ctx, gradient):
        return None, ctx.matrix.transposed()(gradient)


class SparseMatrix(torch.nn.Module):
    """A constant sparse M x K matrix A, as a module: forward(X), or `a @ X`, gives A X.

    a          as spmmbench.prepare takes it; prepared where the calling thread's current device is
    kernel, precision, options, library   as for spmmbench.prepare

    X is K x n, of the precision's type (fp32 for tf32), on A's device; the result is M x n of the
    same type. Rows of X must be contiguous, apart, and start at multiples of 16 bytes: an X whose
    rows are not is copied, such as the gradient of a sum, and so is one whose memory ends where a
    kernel may still read. Raises what spmmbench.prepare and plans raise.
    """

    def __init__(self, a, kernel="auto", precision=None, options=None, device=None, library=None):
        super().__init__()
        self._a = _sparse.csr_of(a)
        if torch.is_tensor(a) and a.requires_grad:
            raise InvalidArgument("A requires a gradient, and only X gets one here")
        self._asked = (kernel, precision, options, device, library)
        self.prepared = Prepared(self._a, *self._asked)
        self._dtype = _DTYPE_OF[self.prepared.precision]
        self._plans = {}
        self._transpose = None  # A^T; of A^T a weak reference to A, so that no cycle keeps both

    def __deepcopy__(self, memo):
        """Itself: A is constant, so a copy of a model shares it."""
        return self

    @property
    def shape(self):
        return self.prepared.shape

    def plan(self, n):
        """The plan for X of K x n, made at the first call."""
        if n not in self._plans:
            self._plans[n] = self.prepared.plan(n)
        return self._plans[n]

    def transposed(self):
        """A^T as such a matrix, made at the first call."""
        known = self._transpose
        if isinstance(known, weakref.ref):
            known = known()
        if known is not None:
            return known
        transpose = self._a.transposed()
        if transpose.same_as(self._a):
            self._transpose = weakref.ref(self)
            return self
        other = SparseMatrix(transpose, *self._asked)
        other._transpose = weakref.ref(self)
        self._transpose = other
        return other

    def forward(self, x):
        if not torch.is_tensor(x):
            raise InvalidArgument(f"X is a {type(x).__name__}; a torch tensor is wanted")
        if x.layout is not torch.strided or x.is_nested:
            raise InvalidArgument("X is a sparse or nested tensor; a dense one is wanted")
        if torch.is_grad_enabled() and x.requires_grad:
            return _Product.apply(self, x)
        return self._multiply(x)

    def __matmul__(self, x):
        return self(x)

    def extra_repr(self):
        return repr(self.prepared)

    def _multiply(self, x):
        if x.dim() != 2 or x.shape[0] != self.shape[1]:
            raise InvalidArgument(f"X is {tuple(x.shape)}; {self.shape[1]} x n is wanted")
        if x.dtype is not self._dtype:
            raise InvalidArgument(f"X is {x.dtype}; {self._dtype} is wanted")
        x = x.resolve_neg()
        plan = self.plan(x.shape[1])
        pitch = x.stride(0) * x.element_size()
        overlap = x.shape[0] > 1 and x.stride(0) < x.shape[1]  # such as one row expanded
        misplaced = pitch % plan.pitch_alignment or x.data_ptr() % plan.data_alignment
        if x.stride(1) != 1 or overlap or misplaced or _ends_early(x, plan):
            x = plan.empty_b(x).copy_(x)
        return plan(x)


def _ends_early(x, plan):
    """Whether x's memory ends where a kernel may still read."""
    pitch, length = (count * x.element_size() for count in (x.stride(0), x.shape[1]))
    read = (x.shape[0] - 1) * pitch + length + plan._gap(length, pitch)
    return x.data_ptr() + read > _dense.TorchArrays.end(x)
