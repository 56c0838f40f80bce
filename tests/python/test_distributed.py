"""A matrix that is divided among the ranks of a torch.distributed job, on the CPU."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from python_case import main, need

np, _, torch = need("numpy", "scipy", "torch")
import scipy.sparse as sp  # noqa: E402

from spmmbench.errors import InvalidArgument  # noqa: E402
from spmmbench.torch import DistributedMatrix, SparseMatrix  # noqa: E402

RANKS = 3


def run_rank(meeting):
    """What one rank checks: its rows of the product and of the gradient are those of the whole."""
    rank = int(os.environ["RANK"])
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=RANKS
    )
    for rows, cols in ((60, 60), (50, 71)):  # of which ranks have as many, and others
        a = sp.random(rows, cols, 0.1, "csr", np.float32, random_state=1)
        generator = torch.Generator().manual_seed(2)
        x = torch.randn(cols, 8, generator=generator)
        wanted = torch.randn(rows, 8, generator=generator)
        whole = x.clone().requires_grad_()
        expected = SparseMatrix(a, kernel="cpu_csr") @ whole
        (expected * wanted).sum().backward()
        divided = DistributedMatrix(a, kernel="cpu_csr")
        divided.settle(8)
        own = x[divided.rows_of_x].clone().requires_grad_()
        got = divided @ own
        (got * wanted[divided.rows]).sum().backward()
        torch.testing.assert_close(got, expected[divided.rows])
        torch.testing.assert_close(own.grad, whole.grad[divided.rows_of_x])
    try:
        divided @ x
    except InvalidArgument:
        pass
    else:
        raise AssertionError("all rows of X were taken for those of a rank")
    torch.distributed.destroy_process_group()


class Distributed(unittest.TestCase):
    def test_every_rank_has_its_rows_of_the_product_and_of_the_gradient(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, str(pathlib.Path(folder) / "meeting")]
            ranks = [
                subprocess.Popen(command, env={**os.environ, "RANK": str(rank)}, stderr=subprocess.PIPE, text=True)
                for rank in range(RANKS)
            ]
            for process in ranks:
                _, error = process.communicate(timeout=200)
                self.assertEqual(process.returncode, 0, error)


if __name__ == "__main__":
    if len(sys.argv) == 2 and "RANK" in os.environ:
        run_rank(sys.argv[1])
    else:
        main()
