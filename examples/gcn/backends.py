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


def _arrays(matrix, device, dtype):
    return (
        torch.as_tensor(matrix.indptr).to(device),
        torch.as_tensor(matrix.indices).to(device),
        torch.as_tensor(matrix.data).to(device, dtype),
    )


class TorchSparse:
    """torch.sparse (cuSPARSE), A in CSR or COO with 32-bit indices where PyTorch allows them."""

    def __init__(self, matrix, device, dtype, layout):
        self._forms = [self._make(m, device, dtype, layout) for m in (matrix, matrix.T.tocsr())]

    @staticmethod
    def _make(matrix, device, dtype, layout):
        csr = torch.sparse_csr_tensor(*_arrays(matrix, device, dtype), size=matrix.shape)
        return csr if layout == "csr" else csr.to_sparse_coo().coalesce()

    def product(self, x):
        return self._forms[0] @ x

    def transposed(self, x):
        return self._forms[1] @ x

    def __call__(self, x):
        return _Constant.apply(self.product, self.transposed, x)


class PygMessages:
    """PyTorch Geometric's message passing over an edge index: gather, scale, scatter."""

    def __init__(self, matrix, device, dtype):
        from torch_geometric.nn import SimpleConv

        coo = matrix.tocoo()
        sources, targets = (torch.as_tensor(x).to(device, torch.int64) for x in (coo.col, coo.row))
        self._edges = torch.stack((sources, targets))
        self._weights = torch.as_tensor(coo.data).to(device, dtype)
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

    def __init__(self, matrix, device, dtype):
        self._forms = [self._make(m, device, dtype) for m in (matrix, matrix.T.tocsr())]

    @staticmethod
    def _make(matrix, device, dtype):
        from torch_geometric import EdgeIndex

        coo = matrix.tocoo()
        rows, columns = (torch.as_tensor(x).to(device, torch.int64) for x in (coo.row, coo.col))
        edges = EdgeIndex(torch.stack((rows, columns)), sparse_size=matrix.shape, sort_order="row")
        return edges.fill_cache_(), torch.as_tensor(coo.data).to(device, dtype)

    def product(self, x):
        return self._forms[0][0].matmul(x, self._forms[0][1])

    def transposed(self, x):
        return self._forms[1][0].matmul(x, self._forms[1][1])

    def __call__(self, x):
        return _Constant.apply(self.product, self.transposed, x)


class Spmmbench:
    """A kernel of libspmmbench."""

    def __init__(self, matrix, device, precision, kernel, widths):
        # On the device from the beginning, as those of the others: all is prepared there.
        arrays = (*_arrays(matrix, device, dtype_of(precision)), matrix.shape)
        self.matrix = SparseMatrix(arrays, kernel, precision, device=torch.device(device).type)
        for width in widths:  # settled, since epochs are captured in a CUDA graph
            self.matrix.plan(width).settle()
            self.matrix.transposed().plan(width).settle()

    def product(self, x):
        return self.matrix @ x

    def transposed(self, x):
        return self.matrix.transposed() @ x

    def __call__(self, x):
        return self.matrix @ x

    def picked(self, n):
        """What `auto` runs for n columns; else nothing."""
        return self.matrix.plan(n).report()["params"].get("picked", "")


def forms(backend, device, precision, widths):
    """The forms that a backend is tried in: {name: how it is made of a scipy matrix}. `widths`: of
    the x to come."""
    dtype = dtype_of(precision)
    if backend == "torch":
        return {
            layout: lambda matrix, layout=layout: TorchSparse(matrix, device, dtype, layout)
            for layout in ("csr", "coo")
        }
    if backend == "pyg":
        return {
            "EdgeIndex": lambda matrix: PygEdgeIndex(matrix, device, dtype),
            "messages": lambda matrix: PygMessages(matrix, device, dtype),
        }
    return {backend: lambda matrix: Spmmbench(matrix, device, precision, backend, widths)}


def _torch_csr(block, dtype):
    return torch.sparse_csr_tensor(block.row_ptr, block.col_idx, block.values.to(dtype), block.shape)


def _transposed_csr(csr):
    """CSR of A^T: the arrays of A in CSC."""
    csc = csr.to_sparse_csc()
    arrays = (csc.ccol_indices(), csc.row_indices(), csc.values())
    return torch.sparse_csr_tensor(*arrays, csr.shape[::-1])


def _with_transposed(csr):
    def product(x):
        if not x.requires_grad:
            return csr @ x
        return _Constant.apply(lambda y: csr @ y, lambda y: _transposed_csr(csr) @ y, x)

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

    def make(block):
        arrays = (block.row_ptr, block.col_idx, block.values, block.shape)
        device = block.values.device.type
        return SparseMatrix(arrays, backend, precision, device=device, checked=False)

    return {backend: make}
