#!/usr/bin/env python3
"""scripts/unseen_matrices.py: the matrices by which `auto` is judged."""

import itertools
import pathlib
import subprocess
import sys
import tempfile

from cli_case import SOURCE, CliCase, main

try:
    import numpy as np
    import scipy.sparse as sp
except ImportError:
    print("numpy or scipy is not installed")
    sys.exit(77)
sys.path.insert(0, str(SOURCE / "scripts"))
import unseen_first  # noqa: E402
import unseen_second  # noqa: E402
import unseen_third  # noqa: E402


class UnseenMatricesTest(CliCase):
    def test_the_first_ones_have_the_nonzeros_that_were_measured(self):
        first = {name: sp.csr_matrix(a) for name, a in itertools.islice(unseen_first.matrices(), 6)}
        nonzeros = {name: a.nnz for name, a in first.items()}
        expected = {"stencil27": 1191016, "stencil27-shuffled": 681472, "stencil9": 806404, "star13": 872560,
                    "dofs3-hex": 1058841, "dofs6-shell": 1140624}  # fmt: skip
        self.assertEqual(nonzeros, expected)
        a = first["stencil9"]
        self.assertEqual((a != a.T).nnz, 0)
        self.assertEqual(set(np.diff(a.indptr)), {4, 6, 9})

    def test_and_those_of_the_second_set(self):
        with tempfile.TemporaryDirectory() as out:
            script = SOURCE / "scripts" / "unseen_matrices.py"
            subprocess.run([sys.executable, script, out, "--set", "second"], capture_output=True, check=True)
            names = {path.stem for path in pathlib.Path(out).glob("*.npz")}
            categories = sp.load_npz(pathlib.Path(out) / "categories.npz")
        self.assertEqual(len(names), 30)
        self.assertEqual(categories.shape, (50_000, sum(unseen_second.FIELDS)))
        self.assertEqual(set(np.diff(categories.indptr)), {len(unseen_second.FIELDS)})

    def test_and_those_of_the_third_set(self):
        small = [name for name in unseen_third.FAMILIES if not name.startswith("large")]
        self.assertEqual(len(unseen_third.FAMILIES), 41)
        third = {name: sp.csr_matrix(a) for name, a in itertools.islice(unseen_third.matrices(), len(small))}
        self.assertEqual(set(third), set(small))
        longest = {name: int(np.diff(a.indptr).max()) for name, a in third.items()}
        self.assertGreater(longest["heavy-row"], 0.29 * third["heavy-row"].nnz)
        self.assertEqual((longest["sierpinski"], third["sierpinski"].nnz), (2**12, 3**12))
        self.assertEqual((third["heisenberg-18"] != third["heisenberg-18"].T).nnz, 0)
        self.assertEqual((sp.tril(third["upper-factor"], -1)).nnz, 0)

    def test_bad_arguments_end_with_one(self):
        script = SOURCE / "scripts" / "unseen_matrices.py"
        result = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 1, result.stderr)


if __name__ == "__main__":
    main()
