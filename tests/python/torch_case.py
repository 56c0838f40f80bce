"""What the tests of products and gradients in PyTorch share."""

import unittest

from python_case import need

np, _, torch = need("numpy", "scipy", "torch")
import scipy.sparse as sp  # noqa: E402

import spmmbench  # noqa: E402

GPU = torch.cuda.is_available() and any(
    kernel["device"] == "cuda" and kernel["name"] != "auto" for kernel in spmmbench.list_kernels()
)
DEVICES = ["cpu", "cuda"] if GPU else ["cpu"]


def matrix(rows=300, cols=200, density=0.05):
    a = sp.random(rows, cols, density, "csr", np.float32, random_state=np.random.default_rng(1))
    a.data = a.data * 2 - 1
    return a


def tensor(a, device="cpu", layout=torch.sparse_csr, dtype=torch.float32):
    arrays = (torch.as_tensor(x) for x in (a.indptr, a.indices, a.data))
    csr = torch.sparse_csr_tensor(*arrays, size=a.shape).to(device).to(dtype)
    block = (3, 4) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None
    return csr.to_sparse(layout=layout, blocksize=block)


def product_and_parts(a, device):
    """B of eight columns, its product with `a`, and the arrays of `a`."""
    x = torch.randn(200, 8, device=device)
    expected = torch.as_tensor(a.toarray(), device=device).double() @ x.double()
    return x, expected, [torch.as_tensor(part, device=device) for part in (a.indptr, a.indices, a.data)]


class Close(unittest.TestCase):
    def assertClose(self, got, expected, tolerance=1e-5):
        got, expected = (x.detach().cpu().double() for x in (got, expected))
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)


def rounded_to_8_bits(a, x, name):
    """The product of `a` and `x` once both are rounded, in fp64."""
    numbers, x8 = a.copy(), spmmbench.fp8(x, name)
    a8 = spmmbench.fp8(torch.as_tensor(a.data), name)
    numbers.data = (a8.values.float() * a8.scale).numpy()
    return torch.as_tensor(numbers.toarray(), device=x.device).double() @ (x8.values.double() * x8.scale)
