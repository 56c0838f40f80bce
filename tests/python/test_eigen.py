"""examples/eigen on the CPU: LOBPCG converges with products in fp64, and its eigenvalues are right."""

import contextlib
import io
import sys
import unittest
from unittest import mock

from python_case import SOURCE, main, need

need("numpy", "scipy")
sys.path.insert(0, str(SOURCE / "examples/eigen"))
import lobpcg  # noqa: E402


class Lobpcg(unittest.TestCase):
    def test_products_in_fp64_converge_and_those_in_fp32_do_not(self):
        arguments = ["lobpcg.py", "--side", "20", "--blocks", "8", "--tolerance", "1e-9"]
        told = io.StringIO()
        with mock.patch.object(sys, "argv", arguments), contextlib.redirect_stdout(told):
            lobpcg.main()
        lines = told.getvalue().splitlines()
        self.assertEqual(lines[0], "400 rows, 1920 nonzeros")
        residuals = {" ".join(line.split()[1:-5]): float(line.split()[-2]) for line in lines[2:]}
        errors = [float(line.split()[-1]) for line in lines[2:]]
        self.assertLess(residuals["scipy"], 1e-9)
        self.assertLess(residuals["spmmbench fp64"], 1e-9)
        self.assertGreater(residuals["spmmbench fp32"], 1e-9)
        self.assertLess(max(errors[:2]), 1e-12)


if __name__ == "__main__":
    main()
