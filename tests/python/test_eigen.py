"""examples/eigen on the CPU: both methods converge with products in fp64, and their eigenvalues are right."""

import contextlib
import importlib.util
import io
import sys
import unittest
from unittest import mock

from python_case import SOURCE, main, need

need("numpy", "scipy")
sys.path.insert(0, str(SOURCE / "examples/eigen"))
import lobpcg  # noqa: E402


def told_by(program, *arguments):
    """The lines that it prints."""
    told = io.StringIO()
    with mock.patch.object(sys, "argv", [program.__file__, *arguments]), contextlib.redirect_stdout(told):
        program.main()
    return told.getvalue().splitlines()


class Eigen(unittest.TestCase):
    def test_products_in_fp64_converge_and_those_in_fp32_do_not(self):
        lines = told_by(lobpcg, "--side", "20", "--blocks", "8", "--tolerance", "1e-9")
        self.assertEqual(lines[0], "400 rows, 1920 nonzeros")
        residuals = {" ".join(line.split()[1:-5]): float(line.split()[-2]) for line in lines[2:]}
        errors = [float(line.split()[-1]) for line in lines[2:]]
        self.assertLess(residuals["scipy"], 1e-9)
        self.assertLess(residuals["spmmbench fp64"], 1e-9)
        self.assertGreater(residuals["spmmbench fp32"], 1e-9)
        self.assertLess(max(errors[:2]), 1e-12)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "needs torch")
    def test_the_filter_converges_by_either_product(self):
        import filtered

        lines = told_by(filtered, "--side", "20", "--blocks", "8", "--degree", "20", "--device", "cpu")
        for line in lines[2:]:
            residual, error = map(float, line.split()[-2:])
            self.assertLess(residual, 1e-9)
            self.assertLess(error, 1e-12)


if __name__ == "__main__":
    main()
