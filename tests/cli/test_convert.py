#!/usr/bin/env python3
"""convert: every format to every other, and misuse told in one line with exit code 1."""

import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ.get("SPMMBENCH", "build/host/spmmbench")
MATRIX = "%%MatrixMarket matrix coordinate real general\n3 4 4\n1 1 1.5\n1 4 -2\n3 1 1e-05\n3 2 0.1\n"


class ConvertTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "a.mtx").write_text(MATRIX)

    def convert(self, *arguments):
        return subprocess.run(
            [PROGRAM, "convert", *arguments], cwd=self.folder, capture_output=True, text=True
        )

    def refused(self, *arguments):
        """The one line that convert writes when it refuses; nothing may be left behind."""
        before = sorted(path.name for path in self.folder.iterdir())
        done = self.convert(*arguments)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), before)
        return done.stderr

    def test_values_are_rounded_to_a_precision_and_those_of_fp64_kept(self):
        names = ["a.mtx", "b.mtx", "c.npy", "d.bin", "e.mtx.gz", "f.mtx"]
        for source, target in zip(names, names[1:]):
            extra = ["--dims", "3", "4", "--bin-type", "fp64"] if source == "d.bin" else []
            done = self.convert(source, target, "--precision", "fp64", *extra)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.folder / "f.mtx").read_text(), MATRIX)
        self.assertEqual((self.folder / "d.bin").stat().st_size, 3 * 4 * 8)
        self.assertEqual(self.convert("a.mtx", "h.mtx", "--precision", "bf16").returncode, 0)
        self.assertIn("3 2 0.100097656\n", (self.folder / "h.mtx").read_text())
        self.assertIn("a .csr holds fp32", self.refused("a.mtx", "b.csr", "--precision", "fp64"))

    def test_a_chain_through_every_format_ends_where_it_began(self):
        names = ["a.mtx", "b.csr", "c.mtx.gz", "d.npy", "e.bin", "f.csr", "g.mtx"]
        for source, target in zip(names, names[1:]):
            dims = ["--dims", "3", "4"] if source.endswith(".bin") else []
            done = self.convert(source, target, *dims)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("3 x 4, 4 entries", done.stderr)
            self.assertEqual(done.stdout, "")
        self.assertEqual((self.folder / "g.mtx").read_text(), MATRIX)
        self.assertEqual(
            (self.folder / "b.csr").read_bytes(), (self.folder / "f.csr").read_bytes()
        )

    def test_a_generated_matrix_is_converted(self):
        self.assertEqual(self.convert("gen:uniform", "u.csr").returncode, 0)

    def test_pruning_leaves_the_blocks_with_the_largest_norms(self):
        self.convert("a.mtx", "a.npy")
        done = self.convert("a.npy", "p.mtx", "--prune", "block:1x2:0.5")
        self.assertEqual(done.returncode, 0, done.stderr)
        kept = (self.folder / "p.mtx").read_text().splitlines()[2:]
        self.assertEqual(kept, ["1 1 1.5", "1 4 -2", "3 1 1e-05", "3 2 0.1"])
        self.convert("a.npy", "p.mtx", "--prune", "block:1x2:0.7")
        kept = (self.folder / "p.mtx").read_text().splitlines()[2:]
        self.assertEqual(kept, ["1 1 1.5", "1 4 -2"])

    def test_misuse_is_one_line(self):
        self.convert("a.mtx", "a.bin")
        (self.folder / "page.mtx").write_text("<!DOCTYPE html>\n")
        (self.folder / "lfs.csr").write_text("version https://git-lfs.github.com/spec/v1\n")
        (self.folder / "huge.mtx").write_text(
            "%%MatrixMarket matrix coordinate pattern general\n1000000000000 3 1\n1 1\n"
        )
        (self.folder / "wide.mtx").write_text(
            "%%MatrixMarket matrix coordinate pattern general\n100000 100000 1\n1 1\n"
        )
        (self.folder / "m.safetensors.index.json").write_text('{"weight_map": {}}')
        for arguments, expected in [
            (["none.mtx", "x.csr"], "none.mtx: cannot open: No such file"),
            ([".", "x.csr"], ".: expected one matrix, got a folder"),
            (["m.safetensors.index.json", "x.csr"], "expected one matrix (FILE.safetensors:NAME), got an index"),
            (["a.mtx", "x.txt"], "x.txt: expected an output name that ends in"),
            (["a.mtx", "a.bin/x.csr"], "a.bin/x.csr: cannot be written: Not a directory"),
            (["a.mtx", "./a.mtx"], "./a.mtx: is the input a.mtx"),
            (["page.mtx", "x.csr"], "page.mtx:1: expected '%%MatrixMarket"),
            (["lfs.csr", "x.mtx"], "git lfs pull"),
            (["huge.mtx", "x.csr"], "huge.mtx:2: expected at most 2147483647 rows"),
            (["wide.mtx", "x.npy"], "expected a dense matrix of at most 4.0 GB"),
            (["a.bin", "x.csr"], "a.bin: expected --dims ROWS COLS"),
            (["a.bin", "x.csr", "--dims", "4", "4"], "expected 64 bytes"),
            (["a.bin", "x.csr", "--dims", "2", "4"], "expected 32 bytes"),
            (["a.mtx", "x.csr", "--prune", "block:2x2:0.5"], "only dense inputs"),
            (["gen:nothing", "x.csr"], "unknown generator 'nothing'"),
        ]:
            with self.subTest(arguments):
                self.assertIn(expected, self.refused(*arguments))


if __name__ == "__main__":
    unittest.main()
