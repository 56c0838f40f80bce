"""Products of torch tensors with gradients: what is behind spmmbench.torch.SparseMatrix."""

from __future__ import annotations

import weakref

import torch

from . import _cuda, _dense
from ._abi import EIGHT_BITS, ELEMENT_OF, ELEMENT_TYPES
from ._prepared import LATE, Prepared
from .errors import Error, InvalidArgument

_DTYPE_OF = {  # of a precision
    name: getattr(torch, ELEMENT_TYPES[element].dtype, torch.uint8) for name, element in ELEMENT_OF.items()
}
# Takes a fifth of asking the driver.
_current_device = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)


class _Product(torch.autograd.Function):
    """C = A X. Its gradient is the product of A^T, so that it can be differentiated again."""

    @staticmethod
    def forward(ctx, matrix, x):
        ctx.matrix, ctx.transpose, ctx.plan = matrix, None, None
        # Here, since the thread of backward passes has nothing of this code in its caches, and would take
        # several times as long. Before the product, so that the host waits for the check of A while the GPU
        # makes A^T.
        try:
            n = matrix.columns(x)
            matrix.plan(n)
            ctx.transpose = matrix.transposed()
            ctx.plan = ctx.transpose.plan(n)
        except Error:  # which the product or the backward pass raises
            pass
        return matrix.multiply(x)

    @staticmethod
    def backward(ctx, gradient):
        plan, transpose = ctx.plan, ctx.transpose
        plain = plan is not None and transpose.own_values and not torch.is_grad_enabled()
        if plain and _takes(plan, gradient):
            return None, _plain_product(plan, gradient)
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


def _takes(plan, x):
    """Whether a plan whose products are plain takes X as it is. Little code, here and in `_plain_product`,
    since a new plan, and above all a backward pass, runs it from memory."""
    return (
        plan.plain
        and x.shape == plan.shape_of_b
        and x.dtype is _DTYPE_OF[plan.b_type]
        and x.get_device() == plan.device
        and x.is_contiguous()
        and not x.is_neg()
        and x.data_ptr() % plan.data_alignment == 0
    )


def _plain_product(plan, x):
    if _current_device() != plan.device:
        _cuda.require_current(plan.device)
    out = x.new_empty(plan.shape)
    plan.launch_at(x.data_ptr(), out.data_ptr(), _dense.torch_stream(plan.device))
    return out


_AT_ONCE = ("auto", "csr_merge")  # kernels whose first product reads A as it is given
_ways: dict[tuple, Prepared | None] = {}  # in which A that preparation does not wait for were prepared, by what they have in common


def _named(x):
    return x is None or type(x) is str


def _prepared(a, asked, turned, checked):
    """A, or A^T. Where nothing waits for A, what does not depend on its arrays and sizes is found out once."""
    kernel, precision, options, device, library = asked
    named = type(kernel) is str and _named(precision) and _named(device) and _named(library)
    there = a.device != "cpu" and torch.is_tensor(a.values)
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


class Multiplier:
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
        self._transpose = None  # of A; of A^T a weak reference to A, so that no cycle keeps both
        self._of_values = None  # A^T with the values of product(X, values)
        self._rows = None  # of A's entries

    def plan(self, n):
        plan = self._plans.get(n)
        if plan is None:
            plan = self._plans[n] = self._prepared_for(n).plan(n)
        return plan

    def _prepared_for(self, n):
        """A as the kernel has prepared it that multiplies X of n columns."""
        kernel = self._kernels.get(n)
        if kernel is None:
            return self.prepared
        if kernel not in self._others:
            asked = (kernel, *self._asked[1:])
            self._others[kernel] = _prepared(self._a, asked, self._turned, self._checked)
        return self._others[kernel]

    def transposed(self):
        known = self._transpose
        if isinstance(known, weakref.ref):
            known = known()
        if known is not None:
            return known
        self._restore()
        on_gpu = self._a.device != "cpu" and self.prepared._kernel.library.own
        if on_gpu and self._checked and not self._turned and self.shape[0] == self.shape[1]:
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
            other = Multiplier(transpose, self._asked, False, self._checked, kernels=self._kernels)
        other._transpose = weakref.ref(self)
        self._transpose = other
        return other

    def _alike(self, prepared):
        """A^T, prepared."""
        return Multiplier(self._a, self._asked, not self._turned, self._checked, prepared, self._kernels)

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

    def columns(self, x):
        """Of an X that fits."""
        if x.dim() != 2 or x.shape[0] != self.shape[1]:
            raise InvalidArgument(f"X is {tuple(x.shape)}; {self.shape[1]} x n is wanted")
        return x.shape[1]

    def multiply(self, x):
        plan = self.plan(self.columns(x))
        if _takes(plan, x):
            return _plain_product(plan, x)
        if x.dtype is not self._dtype:
            if self.prepared.precision in EIGHT_BITS:
                return plan(x.detach().resolve_neg())  # which rounds it
            raise InvalidArgument(f"X is {x.dtype}; {self._dtype} is wanted")
        x = x.resolve_neg()
        pitch = x.stride(0) * x.element_size()
        overlap = x.shape[0] > 1 and x.stride(0) < x.shape[1]  # such as one row expanded
        misplaced = pitch % plan.pitch_alignment or x.data_ptr() % plan.data_alignment
        if x.stride(1) != 1 or overlap or misplaced or _ends_early(x, plan):
            x = plan.empty_b(x).copy_(x)
        return plan(x)


def _ends_early(x, plan):
    """Whether x's memory ends where a kernel may still read."""
    pitch, length = x.stride(0) * x.element_size(), x.shape[1] * x.element_size()
    gap = plan._gap(length, pitch)
    read = (x.shape[0] - 1) * pitch + length + gap
    return gap > 0 and x.data_ptr() + read > _dense.TorchArrays.end(x)
