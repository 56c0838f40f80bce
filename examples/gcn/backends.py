"""The sparse product of a GCN by PyTorch, by PyTorch Geometric and by spmmbench: y = A x, with the
gradient A^T g. A is constant; each backend prepares A and A^T once."""

import warnings

import torch

from spmmbench.torch import SparseMatrix

for told in ("Sparse .* tensor support is in beta", "Sparse invariant checks are implicitly"):
    warnings.filterwarnings("ignore", message=told)


def dtype_of(precision):
    return torch.float16 if precision == "fp16" else torch.float32


class _Constant(torch.autograd.Function):
    """PyTorch's own gradient of A x makes A^T anew in every backward pass; here it is made once."""

    @staticmethod
    def forward(ctx, product, transposed, x):
        ctx.transposed = transposed
        return product(x)

    @staticmethod
    def backward(ctx, gradient):
        return None, None, ctx.transposed(gradient.contiguous())


def on_device(matrix, device, precision):
    """The arrays of a scipy matrix in CSR, which every backend begins with, and its shape."""
    arrays = (torch.as_tensor(x).to(device) for x in (matrix.indptr, matrix.indices, matrix.data))
    row_ptr, col_idx, values = arrays
    return row_ptr, col_idx, values.to(dtype_of(precision)), matrix.shape


def _csr(a):
    return torch.sparse_csr_tensor(*a[:3], a[3])


def _rows_of(csr):
    """The row of each entry."""
    lengths = csr.crow_indices().diff()
    rows = torch.arange(len(lengths), device=lengths.device)
    return rows.repeat_interleave(lengths, output_size=csr.values().numel())


class TorchSparse:
    """torch.sparse (cuSPARSE), A in CSR or COO with 32-bit indices where PyTorch allows them."""

    def __init__(self, a, layout):
        self._forms = [self._form(csr, layout) for csr in (_csr(a), transposed_csr(_csr(a)))]

    @staticmethod
    def _form(csr, layout):
        return csr if layout == "csr" else csr.to_sparse_coo().coalesce()

    def product(self, x):
        return self._forms[0] @ x

    def transposed(self, x):
        return self._forms[1] @ x

    def __call__(self, x):
        return _Constant.apply(self.product, self.transposed, x)


class PygMessages:
    """PyTorch Geometric's message passing over an edge index: gather, scale, scatter."""

    def __init__(self, a):
        from torch_geometric.nn import SimpleConv

        csr = _csr(a)
        self._edges = torch.stack((csr.col_indices().long(), _rows_of(csr)))
        self._weights = csr.values()
        self._conv = SimpleConv(aggr="sum")

    def __call__(self, x):
        return self._conv(x, self._edges, edge_weight=self._weights)

    def product(self, x):
        return self(x)

    def transposed(self, x):
        return self._conv(x, self._edges.flip(0), edge_weight=self._weights)


class PygEdgeIndex:
    """PyTorch Geometric's EdgeIndex, which keeps A and A^T in CSR and multiplies by torch.sparse (or
    by pyg-lib where that is installed)."""

    def __init__(self, a):
        self._forms = [self._form(csr) for csr in (_csr(a), transposed_csr(_csr(a)))]

    @staticmethod
    def _form(csr):
        from torch_geometric import EdgeIndex

        edges = torch.stack((_rows_of(csr), csr.col_indices().long()))
        return EdgeIndex(edges, sparse_size=csr.shape, sort_order="row").fill_cache_(), csr.values()

    def product(self, x):
        return self._forms[0][0].matmul(x, self._forms[0][1])

    def transposed(self, x):
        return self._forms[1][0].matmul(x, self._forms[1][1])

    def __call__(self, x):
        return _Constant.apply(self.product, self.transposed, x)


class Spmmbench:
    """A kernel of libspmmbench. `calls`: {width: how often a product is to come}, prepared here, since epochs are
    captured in a CUDA graph."""

    def __init__(self, a, precision, kernel="auto", calls=None):
        self.matrix = SparseMatrix(a, kernel, precision, device=a[0].device.type, calls=calls)
        self.matrix.settle(*(calls or ()))

    def product(self, x):
        return self.matrix @ x

    def transposed(self, x):
        return self.matrix.transposed() @ x

    def __call__(self, x):
        return self.matrix @ x

    def picked(self, n):
        """What `auto` runs for n columns; else nothing."""
        return self.matrix.plan(n).report()["params"].get("picked", "")


def forms(backend, precision, calls):
    """The forms that a backend is tried in: {name: how it is made of what `on_device` gives}. `calls`:
    {width: how many products of A, and as many of its transpose, are to come}."""
    if backend == "torch":
        return {layout: lambda a, layout=layout: TorchSparse(a, layout) for layout in ("csr", "coo")}
    if backend == "pyg":
        return {"EdgeIndex": PygEdgeIndex, "messages": PygMessages}
    return {backend: lambda a: Spmmbench(a, precision, backend, calls)}


def _torch_csr(block, dtype):
    return torch.sparse_csr_tensor(block.row_ptr, block.col_idx, block.values.to(dtype), block.shape)


def transposed_csr(csr):
    """CSR of A^T: the arrays of A in CSC."""
    csc = csr.to_sparse_csc()
    arrays = (csc.ccol_indices(), csc.row_indices(), csc.values())
    return torch.sparse_csr_tensor(*arrays, csr.shape[::-1])


def _with_transposed(csr):
    def product(x):
        if not x.requires_grad:
            return csr @ x
        return _Constant.apply(lambda y: csr @ y, lambda y: transposed_csr(csr) @ y, x)

    return product


def _messages(block, dtype):
    from torch_geometric.nn import SimpleConv

    lengths = block.row_ptr.long().diff()
    targets = torch.arange(block.shape[0], device=lengths.device).repeat_interleave(
        lengths, output_size=len(block.col_idx)
    )
    edges, weights = torch.stack((block.col_idx.long(), targets)), block.values.to(dtype)
    conv = SimpleConv(aggr="sum")
    return lambda x: conv((x, None), edges, edge_weight=weights, size=block.shape[::-1])


def forms_of_blocks(backend, precision):
    """The forms that a backend is tried in for a Block of neighbours.py: {name: a function that makes
    the product of a block}. All that is made for a block is made in it, or in the product."""
    dtype = dtype_of(precision)
    if backend == "torch":
        return {
            "csr": lambda block: lambda x: _torch_csr(block, dtype) @ x,
            "csr, transposed": lambda block: _with_transposed(_torch_csr(block, dtype)),
            "coo": lambda block: lambda x: _torch_csr(block, dtype).to_sparse_coo() @ x,
        }
    if backend == "pyg":
        return {"messages": lambda block: _messages(block, dtype)}

    checked = backend == "checked"
    kernel = "auto" if checked else backend

    def make(block):
        arrays = (block.row_ptr, block.col_idx, block.values, block.shape)
        device = block.values.device.type
        return SparseMatrix(arrays, kernel, precision, device=device, checked=checked)

    return {backend: make}
