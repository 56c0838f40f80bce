#!/usr/bin/env python3
"""`spmmbench generate`: outputs, B of two-operand generators, one clear line for bad input."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ.get("SPMMBENCH")


def written(path):
    """Whether there is something in the file; it may come and go."""
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False


class GenerateTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def generate(self, *args):
        command = [PROGRAM, "generate", *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def test_the_prefix_is_optional_and_the_thread_count_does_not_matter(self):
        with_prefix, without = self.folder / "a.mtx", self.folder / "b.mtx"
        self.assertEqual(self.generate("gen:fem2d?vertices=300", with_prefix).returncode, 0)
        os.environ["OMP_NUM_THREADS"] = "1"
        result = self.generate("fem2d?vertices=300", without)
        del os.environ["OMP_NUM_THREADS"]
        self.assertIn("300 x 300, ", result.stderr)
        self.assertEqual(with_prefix.read_bytes(), without.read_bytes())
        head = with_prefix.read_text().splitlines()[0]
        self.assertEqual(head, "%%MatrixMarket matrix coordinate pattern general")

    def test_a_signal_leaves_nothing_behind(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            process = subprocess.Popen([PROGRAM, "generate", "uniform?rows=200000&cols=200000&nnz_per_row=20",
                                        self.folder / "a.mtx.gz"], stderr=subprocess.DEVNULL)
            part = self.folder / "a.mtx.gz.part"
            while not written(part):
                self.assertIsNone(process.poll())
            process.send_signal(number)
            self.assertEqual(process.wait(60), -number)
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_weights_keep_their_values(self):
        out = self.folder / "w.mtx"
        self.generate("block_weights?rows=64&cols=64&block=16&sparsity=0.5", out)
        lines = out.read_text().splitlines()
        self.assertEqual(lines[0].split()[3], "real")
        self.assertEqual(len([line for line in lines if line[0] != "%"]), 1 + 8 * 256)

    def test_esmm_writes_both_operands(self):
        a, b = self.folder / "a.bin", self.folder / "b.npy"
        result = self.generate("esmm?m=40&k=50&n=60", a, "--b", b)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(a.stat().st_size, 4 * 40 * 50)
        self.assertGreater(b.stat().st_size, 4 * 50 * 60)

    def test_too_little_memory_costs_that_matrix_only(self):
        large, out = "gen:uniform?rows=60000&cols=60000&density=0.2", self.folder / "out.json"
        limited = f'ulimit -v 2000000; exec "{PROGRAM}" "$@"'
        for args in (("generate", large, self.folder / "a.csr"),
                     ("run", large, "gen:uniform?rows=60", "-k", "cpu_csr", "-n", "8", "--device", "-1", "--no-baselines",
                      "--max-samples", "4", "-q", "--json", out)):
            result = subprocess.run(["sh", "-c", limited, "sh", *map(str, args)], capture_output=True, text=True,
                                    check=False, env={**os.environ, "OMP_NUM_THREADS": "2"})
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertRegex(result.stderr, r"^spmmbench: .*(out of host memory|available)\n$")
        self.assertEqual([row["status"] for row in json.loads(out.read_text())["rows"]], ["ok"])

    def test_bad_input_is_one_line_and_exit_code_1(self):
        for args, expected in (
            (("no_such", "x.mtx"), "unknown generator 'no_such'"),
            (("uniform?density=2", "x.mtx"), "expected a number from 0 to 1"),
            (("uniform?colour=2", "x.mtx"), "has no option 'colour'"),
            (("uniform?rows", "x.mtx"), "expected key=value"),
            (("uniform", "x.txt"), "expected an output name that ends in"),
            (("uniform", "/dev/null/x.mtx"), "/dev/null/x.mtx: cannot be written: Not a directory"),
            (("uniform", "x.mtx", "--b", self.folder / "b.npy"), "makes no B"),
            (
                ("esmm?size=8", self.folder / "x.mtx", "--b", self.folder / "b.mtx"),
                "for B that ends",
            ),
            (("esmm?size=8", "x.npy", "--b", "new/../x.npy"), "expected two files to write, got one"),
        ):
            with self.subTest(args=args):
                result = self.generate(*args)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertIn(expected, result.stderr)
        self.assertFalse(pathlib.Path("x.mtx").exists() or pathlib.Path("x.npy").exists())


if __name__ == "__main__":
    if not PROGRAM:
        print("SPMMBENCH is not set")
        sys.exit(77)
    unittest.main()
