"""examples/gcn on the CPU: every backend learns the same, and the report says so."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from python_case import PACKAGE, SOURCE, main, need

np, scipy, _ = need("numpy", "scipy", "torch")
import os  # noqa: E402

import scipy.sparse as sp  # noqa: E402

EXAMPLE = SOURCE / "examples" / "gcn"
sys.path.insert(0, str(EXAMPLE))

# Whether a group has threads, and how many are left when it is destroyed after a step of an optimiser.
THREADS_OF_A_GROUP = """
import os, pathlib, sys
sys.path[:0] = sys.argv[1:]
import several_gpus, torch
threads = lambda: set(os.listdir("/proc/self/task"))
weight = torch.nn.Parameter(torch.ones(1))
weight.grad = torch.ones(1)
before = threads()
torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
of_group = threads() - before
torch.optim.Adam([weight]).step()
torch.distributed.destroy_process_group()
left = of_group & threads()
print(len(of_group) > 0, len(left))
print(*(pathlib.Path("/proc/self/task", thread, "comm").read_text().strip() for thread in left), file=sys.stderr)
"""


def python(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-W", "ignore", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


class Training(unittest.TestCase):
    def test_backends_train_alike_and_the_report_compares_them(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            sp.save_npz(folder / "ring.npz", sp.diags([1.0] * 199, 1, (200, 200), "csr"))
            told = python(
                EXAMPLE / "gcn.py", "--out", folder / "gcn.json", folder / "ring.npz", "--device",
                "cpu", "--widths", "8", "--precision", "fp32", "--backends", "torch,auto",
                "--epochs", "30", "--eager-epochs", "1", "--seconds", "60", "--planned-epochs", "4",
                "--runs", "2",
            )  # fmt: skip
            self.assertEqual(told.returncode, 0, told.stderr)
            rows = json.loads((folder / "gcn.json").read_text())["rows"]
            self.assertEqual([row["status"] for row in rows], ["ok", "ok"], rows)
            reference, ours = (np.array(row["losses"]) for row in rows)
            self.assertEqual(len(reference), 30)
            self.assertLess(reference[-1], 0.99 * reference[0])
            np.testing.assert_allclose(ours, reference, rtol=1e-3)
            run = rows[1]["run"]
            self.assertEqual((run["epochs"], run["ms"]["n"], run["prepared_ms"]["n"]), (4, 2, 2))
            told = python(EXAMPLE / "report.py", folder / "gcn.json", "--markdown")
            self.assertEqual(told.returncode, 0, told.stderr)
            self.assertIn("| ring | 8 |", told.stdout)


class SeveralGpus(unittest.TestCase):
    def test_ranks_train_as_one_does(self):
        with tempfile.TemporaryDirectory() as name:
            ring = pathlib.Path(name) / "ring.npz"
            sp.save_npz(ring, sp.diags([1.0] * 200, 1, (201, 201), "csr"))
            told = python(
                "-m", "torch.distributed.run", "--nproc-per-node", 2, EXAMPLE / "several_gpus.py", ring,
                "--width", 8, "--precision", "fp32", "--epochs", 3,
            )  # fmt: skip
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertLess(float(told.stdout.split("apart by ")[1].split()[0]), 1e-5, told.stdout)
        self.assertRegex(told.stdout, r"by rounding alone [0-9.e+-]+: (equal within|more than) noise")

    def test_the_threads_of_a_process_group_end_with_it(self):
        told = python("-c", THREADS_OF_A_GROUP, EXAMPLE, SOURCE / "scripts")
        self.assertEqual(told.stdout.split(), ["True", "0"], told.stderr)


class MiniBatches(unittest.TestCase):
    def test_backends_train_alike_on_sampled_neighbours_and_the_table_compares_them(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            graph = sp.random(300, 300, 0.05, "csr", random_state=1)
            sp.save_npz(folder / "graph.npz", graph)
            told = python(
                EXAMPLE / "minibatch.py", "--out", folder / "out.json", folder / "graph.npz", "--device",
                "cpu", "--widths", "8", "--precision", "fp32", "--backends", "torch,auto,checked", "--steps", "3",
                "--batches", "50",
            )  # fmt: skip
            self.assertEqual(told.returncode, 0, told.stderr)
            rows = json.loads((folder / "out.json").read_text())["rows"]
            self.assertEqual([row["status"] for row in rows], ["ok"] * 3, rows)
            for row in rows[1:]:
                np.testing.assert_allclose(row["losses"], rows[0]["losses"], rtol=1e-4)
            told = python(EXAMPLE / "report.py", folder / "out.json", "--markdown")
            self.assertEqual(told.returncode, 0, told.stderr)
            self.assertIn("| fp32 | 50 | 8 | graph |", told.stdout)

    def test_a_sample_has_neighbours_alone_each_once_and_as_many_as_asked_for(self):
        import torch
        from neighbours import Graph

        adjacency = sp.random(200, 200, 0.1, "csr", random_state=2)
        random = torch.Generator().manual_seed(1)
        seeds = torch.arange(0, 200, 3)
        read, blocks = Graph(adjacency, torch.device("cpu")).sample(seeds, [4, 1000], random)
        first, last = (
            sp.csr_matrix((x.values, x.col_idx, x.row_ptr), shape=x.shape) for x in blocks
        )
        neighbours = adjacency[seeds.numpy()] != 0
        np.testing.assert_array_equal(last.getnnz(1), neighbours.getnnz(1))  # fewer than asked for
        middle = np.unique(neighbours.indices)
        self.assertEqual(first.shape, (len(middle), len(read)))
        own = sp.csr_matrix((first.data, read.numpy()[first.indices], first.indptr), (len(middle), 200))
        self.assertEqual((own != 0).multiply(adjacency[middle] != 0).nnz, own.nnz)
        np.testing.assert_array_equal(first.getnnz(1), np.minimum(4, adjacency[middle].getnnz(1)))
        np.testing.assert_allclose(first.sum(1), 1, rtol=1e-6)
        self.assertTrue(first.has_canonical_format)


class Refusals(unittest.TestCase):
    def test_what_cannot_be_trained_is_said_in_one_line(self):
        for arguments, words in (
            (("--backends", "torch,nonsense"), "backend nonsense: torch"),
            (("--epochs", "0"), "epochs and widths are numbers from 1"),
            (("--spmmbench", "/no/such/program"), "/no/such/program: No such file or directory"),
        ):
            with self.subTest(words), tempfile.TemporaryDirectory() as folder:
                out = pathlib.Path(folder) / "gcn.json"
                told = python(EXAMPLE / "gcn.py", "gen:uniform", "--out", out, "--device", "cpu", *arguments)
                self.assertNotEqual(told.returncode, 0)
                self.assertIn(words, told.stderr.splitlines()[-1])
                self.assertNotIn("Traceback", told.stderr)


class Graphs(unittest.TestCase):
    def test_rows_and_columns_are_normalised_with_self_loops(self):
        import graphs

        directed = sp.csr_matrix(np.array([[0, 5, 5], [0, 0, 0], [0, 7, 1]], float))
        expected = np.array([[1, 1, 1], [0, 1, 0], [0, 1, 1]], float)
        expected /= np.sqrt(expected.sum(1, keepdims=True) * expected.sum(0, keepdims=True))
        np.testing.assert_allclose(graphs.normalised(directed).toarray(), expected, rtol=1e-6)

    def test_the_programs_own_files_have_the_pattern_of_matrix_market(self):
        import graphs

        program = os.environ.get("SPMMBENCH")
        if not program:
            self.skipTest("SPMMBENCH is not set")
        with tempfile.TemporaryDirectory() as folder:
            loaded = []
            for name in ("graph.csr", "graph.mtx"):
                path = pathlib.Path(folder) / name
                spec = "community?vertices=50&mean=4&community=10"
                subprocess.run([program, "generate", spec, path], check=True, capture_output=True)
                loaded.append(graphs.load(str(path))[1] != 0)
        self.assertEqual((loaded[0] != loaded[1]).nnz, 0)
        self.assertGreater(loaded[0].nnz, 50)


if __name__ == "__main__":
    main()
