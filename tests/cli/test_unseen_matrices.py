#!/usr/bin/env python3
"""scripts/unseen_matrices.py: the matrices by which `auto` is judged."""

import itertools
import subprocess
import sys

from cli_case import SOURCE, CliCase, main

try:
    import numpy as np
    import scipy.sparse as sp
except ImportError:
    print("numpy or scipy is not installed")
    sys.exit(77)
sys.path.insert(0, str(SOURCE / "scripts"))
import unseen_matrices  # noqa: E402


class UnseenMatricesTest(CliCase):
    def test_the_first_ones_have_the_nonzeros_that_were_measured(self):
        first = {name: sp.csr_matrix(a) for name, a in itertools.islice(unseen_matrices.matrices(), 6)}
        nonzeros = {name: a.nnz for name, a in first.items()}
        expected = {"stencil27": 1191016, "stencil27-shuffled": 681472, "stencil9": 806404, "star13": 872560,
                    "dofs3-hex": 1058841, "dofs6-shell": 1140624}  # fmt: skip
        self.assertEqual(nonzeros, expected)
        a = first["stencil9"]
        self.assertEqual((a != a.T).nnz, 0)
        self.assertEqual(set(np.diff(a.indptr)), {4, 6, 9})

    def test_bad_arguments_end_with_one(self):
        script = SOURCE / "scripts" / "unseen_matrices.py"
        result = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 1, result.stderr)


if __name__ == "__main__":
    main()
