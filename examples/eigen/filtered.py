#!/usr/bin/env python3
"""The smallest eigenvalues of a grid's Laplacian by subspace iteration with a Chebyshev filter, in fp64 and on a GPU
where there is one. All that the filter does is to multiply A by a block of 8, 16 or 32 vectors. Compares the product
of torch.sparse, which is cuSPARSE's on a GPU, with that of spmmbench."""

import pathlib
import sys
import time
import warnings

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from command_line import Parser, require, run  # noqa: E402

require("numpy", "scipy", "torch", "spmmbench")

import torch  # noqa: E402
from lobpcg import eigenvalues_of_laplacian, laplacian  # noqa: E402

from spmmbench.torch import SparseMatrix  # noqa: E402

for told in ("Sparse CSR tensor support is in beta state", "Sparse invariant checks are implicitly"):
    warnings.filterwarnings("ignore", message=told)
LARGEST = 8.0  # no eigenvalue of a grid's Laplacian is larger


def as_torch(a, device):
    parts = (torch.from_numpy(x).to(device) for x in (a.indptr, a.indices, a.data))
    return torch.sparse_csr_tensor(*parts, size=a.shape, check_invariants=False)


def filtered(product, x, least, degree):
    """p(A) x, p the Chebyshev polynomial that is at most 1 from `least` to LARGEST and grows below."""
    middle, half = (LARGEST + least) / 2, (LARGEST - least) / 2
    before, now = x, (product(x) - middle * x) / half
    for _ in range(degree - 1):
        before, now = now, (product(now) - middle * now) * (2 / half) - before
    return now


def solve(product, rows, block, degree, tolerance, iterations, device):
    """Eigenvalues, the largest residual |A x - w x| of the smaller half, and the number of products."""
    random = torch.Generator().manual_seed(1)
    x = torch.randn(rows, block, dtype=torch.float64, generator=random).to(device)
    for iteration in range(iterations):
        x = torch.linalg.qr(x).Q.contiguous()
        ax = product(x)
        values, vectors = torch.linalg.eigh(x.T @ ax)
        x, ax = x @ vectors, ax @ vectors
        residual = torch.linalg.norm(ax - x * values, dim=0)[: block // 2].max().item()
        if residual < tolerance:
            break
        x = filtered(product, x, values[-1].item(), degree)
    return values[: block // 2].cpu().numpy(), residual, 1 + iteration * (degree + 1)


def seconds_of(work, device):
    def synchronize():
        if device == "cuda":
            torch.cuda.synchronize()

    synchronize()
    start = time.perf_counter()
    out = work()
    synchronize()
    return time.perf_counter() - start, out


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("--side", type=int, default=300, help="points of a side of the grid")
    parser.add_argument("--blocks", default="8,16,32", help="vectors of a block; the smaller half are wanted")
    parser.add_argument("--degree", type=int, default=100, help="of the filter")
    parser.add_argument("--tolerance", type=float, default=1e-9, help="of the residual")
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    device = arguments.device
    host = laplacian(arguments.side)
    a = as_torch(host, device)
    ours = SparseMatrix(a, precision="fp64")
    print(f"{a.shape[0]} rows, {host.nnz} nonzeros, {device}")
    print("block  product of    products   ms each   all s   residual   error of the eigenvalues")
    for block in map(int, arguments.blocks.split(",")):
        right = eigenvalues_of_laplacian(arguments.side, block // 2)
        for name, product in {"torch.sparse": lambda x: a @ x, "spmmbench": lambda x: ours @ x}.items():
            x = torch.ones(a.shape[0], block, dtype=torch.float64, device=device)
            product(x)  # prepares
            settings = (a.shape[0], block, arguments.degree, arguments.tolerance, arguments.iterations, device)
            seconds, (values, residual, products) = seconds_of(lambda p=product: solve(p, *settings), device)
            each, _ = seconds_of(lambda p=product: [p(x) for _ in range(20)], device)
            error = abs(values - right).max()
            print(
                f"{block:5}  {name:12}  {products:8}  {1e3 * each / 20:8.3f}  {seconds:6.2f}  {residual:9.1e}  {error:9.1e}"
            )


if __name__ == "__main__":
    run(main)
