#!/usr/bin/env python3
"""The smallest eigenvalues of a grid's Laplacian by scipy's LOBPCG, a block method: nearly all of its work on A is
the product of A and a block of 8, 16 or 32 vectors. Compares that of scipy with plans of spmmbench on the CPU."""

import pathlib
import sys
import time
import warnings

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from command_line import Parser, require, run  # noqa: E402

require("numpy", "scipy", "spmmbench")

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
import scipy.sparse.linalg  # noqa: E402

import spmmbench  # noqa: E402


def laplacian(side):
    """Of a square grid of side x side points."""
    line = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], (side, side))
    one = sp.eye(side)
    return sp.csr_matrix(sp.kron(line, one) + sp.kron(one, line))


def eigenvalues_of_laplacian(side, count):
    line = 2 - 2 * np.cos(np.pi * np.arange(1, side + 1) / (side + 1))
    return np.sort((line[:, None] + line).ravel())[:count]


class Product:
    """A X by plans in one precision, one for each number of columns: the block shrinks as vectors converge."""

    def __init__(self, a, precision):
        self._prepared = spmmbench.prepare(a, precision=precision, device="cpu")
        self._dtype = np.float64 if precision == "fp64" else np.float32
        self._plans = {}

    def __call__(self, x):
        n = x.shape[1]
        if n not in self._plans:
            self._plans[n] = self._prepared.plan(n)
        return (self._plans[n] @ np.ascontiguousarray(x, self._dtype)).astype(np.float64)


def solve(a, product, count, tolerance, iterations):
    """Seconds of the whole, seconds of the products, their number, eigenvalues and the largest residual |A x - w x|."""
    calls = []

    def timed(x):
        start = time.perf_counter()
        out = product(x)
        calls.append(time.perf_counter() - start)
        return out

    first = np.random.default_rng(1).standard_normal((a.shape[0], count))
    inverse = scipy.sparse.linalg.splu(sp.csc_matrix(a + 1e-3 * sp.eye(a.shape[0])))
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what has not converged: the residual says so
        values, vectors = scipy.sparse.linalg.lobpcg(
            timed, first, M=inverse.solve, tol=tolerance, maxiter=iterations, largest=False
        )
    seconds = time.perf_counter() - start
    residual = np.linalg.norm(a @ vectors - vectors * values, axis=0).max()
    return seconds, sum(calls), len(calls), values, residual


def main():
    parser = Parser(description=__doc__)
    parser.add_argument("--side", type=int, default=100, help="points of a side of the grid")
    parser.add_argument("--blocks", default="8,16,32", help="vectors of a block")
    parser.add_argument("--tolerance", type=float, default=1e-10, help="of the residual")
    parser.add_argument("--iterations", type=int, default=40)
    arguments = parser.parse_args()
    a = laplacian(arguments.side)
    products = {"scipy": lambda x: a @ x, **{f"spmmbench {p}": Product(a, p) for p in ("fp64", "fp32")}}
    print(f"{a.shape[0]} rows, {a.nnz} nonzeros")
    print("block  product of      products      ms each   all s   residual   error of the eigenvalues")
    for count in map(int, arguments.blocks.split(",")):
        right = eigenvalues_of_laplacian(arguments.side, count)
        for name, product in products.items():
            seconds, in_products, calls, values, residual = solve(
                a, product, count, arguments.tolerance, arguments.iterations
            )
            error = np.abs(np.sort(values) - right).max()
            print(
                f"{count:5}  {name:14}  {calls:8}  {1e3 * in_products / calls:11.3f}  {seconds:6.2f}  {residual:9.1e}"
                f"  {error:9.1e}"
            )


if __name__ == "__main__":
    run(main)
