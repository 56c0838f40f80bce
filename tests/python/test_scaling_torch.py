"""The products of scripts/scaling_torch.py, which PyTorch makes on several ranks, on the CPU."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from python_case import main, need

np, scipy, _ = need("numpy", "scipy", "torch")
import scipy.io  # noqa: E402
import scipy.sparse as sp  # noqa: E402

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "scaling_torch.py"


class ScalingTorch(unittest.TestCase):
    def run_ranks(self, ranks, *args):
        launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
        return subprocess.run(
            [*launcher, SCRIPT, *args], env=environment, capture_output=True, text=True, timeout=200
        )

    def test_both_algorithms_are_right_on_four_ranks(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "graph.mtx"
            scipy.io.mmwrite(path, sp.random(70, 70, 0.1, random_state=1))
            times = path.with_suffix(".csv")
            result = self.run_ranks(4, path, "-n", "8", "--csv", times)
            head, *rows = times.read_text().splitlines() if times.exists() else [""]
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        self.assertEqual([line.split()[2] for line in lines], ["1D", "1.5D"])
        self.assertEqual(head, "matrix,n,precision,kernel,split,gpus,hot_median_us")
        self.assertEqual([row.split(",")[:6] for row in rows],
                         [["graph", "8", "fp32", "torch.sparse", name, "4"] for name in ("1D", "1.5D")])
        for line in lines:
            self.assertLess(float(line.split()[-1]), 1e-5)

    def test_without_a_launcher_it_says_how_to_start_it(self):
        environment = {name: value for name, value in os.environ.items() if name != "RANK"}
        result = subprocess.run(
            [sys.executable, SCRIPT, "a.mtx"], env=environment, capture_output=True, text=True
        )
        self.assertEqual(result.returncode, 1)
        self.assertIn("start it with torchrun", result.stderr)


if __name__ == "__main__":
    main()
