#!/usr/bin/env python3
"""What `spmmbench` refuses: one clear line for bad input."""

import array
import gzip

from cli_case import SMALL, SOURCE, CliCase, main, read

DATA = SOURCE / "data"
COORDINATE = "%%MatrixMarket matrix coordinate real general\n"
LFS_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 123456\n"
HTML_PAGE = "<!DOCTYPE html>\n<html><body>Not found</body></html>\n"


class BadInputTest(CliCase):
    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def refused(self, expected, *args, code=1):
        self.assert_one_line(self.run_cpu(*args, "--quiet"), code, expected)

    def test_missing_files_are_named(self):
        self.refused("no_such.mtx: no such file", "no_such.mtx")
        self.refused("no_such: cannot be opened", "@no_such")
        self.refused("no matrix files in this folder", self.folder)
        self.refused("nothing to run: expected a PATH")

    def test_truncated_files_are_refused(self):
        self.refused(":4: expected 3 entries, got the end of the file after 2", self.file("a.mtx", COORDINATE + "3 3 3\n1 1 1\n2 2 2\n"))
        whole = gzip.compress(b"%" * 100000, compresslevel=0)
        self.refused("truncated", self.file("b.mtx.gz", whole[:5000]))
        cache = self.folder / "c.csr"
        self.spmmbench("convert", DATA / "fem2d_plate.mtx.gz", cache)
        self.refused("truncated", self.file("d.csr", cache.read_bytes()[:1000]))
        for name in ("e.mtx", "e.mtx.gz", "e.smtx", "e.csr", "e.npy", "e.npz", "e.safetensors"):
            self.refused("got an empty file", self.file(name, ""))

    def test_lfs_pointers_and_html_pages_are_named_as_such(self):
        for name in ("a.mtx", "a.mtx.gz", "a.csr", "a.npy"):
            self.refused("Git LFS pointer", self.file(name, LFS_POINTER))
            self.refused("an HTML page", self.file(name, HTML_PAGE))

    def test_wrong_dims_are_refused_with_the_sizes_expected(self):
        values = self.file("a.bin", bytes(4 * 12))
        self.refused("expected --dims ROWS COLS", values)
        self.refused("expected 60 bytes (3 x 5 values of fp32), got 48", values, "--dims", 3, 5)
        self.refused("--dims: expected ROWS COLS", values, "--dims", 3)
        self.refused("--dims: expected ROWS COLS", values, "--dims", "a", "b")
        self.refused("--dims: expected positive sizes", values, "--dims", 0, 12)
        self.refused("expected as many rows of B as columns of A", SMALL, "--b",
                     self.file("b.bin", bytes(4 * 12)), "--dims", 3, 3, 4)
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (40, 0), }\n"
        empty = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
        self.refused("B is 40 x 0: expected at least one column", SMALL, "--b",
                     self.file("b.npy", empty))

    def test_sizes_beyond_32_bits_are_refused(self):
        huge = self.file("a.mtx", COORDINATE + "1000000000000 3 1\n1 1 1.0\n")
        self.refused(":2: expected at most 2147483647 rows", huge)
        self.refused(":2: expected 1000000000000 entries",
                     self.file("b.mtx", COORDINATE + "3 3 1000000000000\n1 1 1.0\n"))

    def test_a_bad_entry_is_named_by_file_and_line(self):
        self.refused("a.mtx:4:", self.file("a.mtx", COORDINATE + "3 3 2\n1 1 1.0\n2 4 1.0\n"))

    def test_values_that_are_not_finite_are_counted_and_warned_of(self):
        matrix, out = self.file("a.mtx", COORDINATE + "3 3 4\n1 1 nan\n2 2 1e300\n2 3 1\n3 1 2\n"), self.folder / "o.json"
        for precision, count in (("fp32", 2), ("fp64", 1)):  # fp64 holds 1e300
            result = self.run_cpu(matrix, "--precision", precision, "--json", out, "--overwrite")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("values that are NaN or infinite (most", result.stderr)
            self.assertEqual(read(out)["rows"][0]["metrics"]["a_not_finite"], count)

    def test_bad_arguments_are_one_line_with_what_was_expected(self):
        self.refused("did you mean 'degree'?", SMALL, "--reorder", "dergee")
        self.refused("did you mean '--json'?", SMALL, "--jsn", "out.json")
        self.refused("not expected: -y (see spmmbench run --help)", SMALL, "-y")
        self.refused("did you mean 'density'?", "gen:uniform?densty=1")
        self.assert_one_line(self.spmmbench("run", SMALL, "--json"), 1, "--json: expected a value (see")
        for expected, *args in (
            ("-n '0': expected positive integers", "-n", 0),
            ("-n '32:16:x2': expected BEGIN:END:xFACTOR or BEGIN:END:STEP", "-n", "32:16:x2"),
            ("-n '16:64': expected BEGIN:END:xFACTOR or BEGIN:END:STEP", "-n", "16:64"),
            ("-n '4:': expected BEGIN:END:xFACTOR or BEGIN:END:STEP", "-n", "4:"),
            ("-n '4::': expected positive integers", "-n", "4::"),
            ("precision 'fp8': expected fp32, tf32, fp16", "--precision", "fp8"),
            ("unknown reordering 'sideways'", "--reorder", "sideways"),
            ("--b-layout diagonal: expected row or col", "--b-layout", "diagonal"),
            ("no_such.npy: cannot open", "--b", "no_such.npy"),
            ("--nonsense", "--nonsense"),
            ("--n: given 2 times, expected once", "-n", 8, "-n", 16),
            ("--noise: expected a number that is not negative, got 'nan'", "--noise", "nan"),
            ("-n '1:9223372036854775807:x2': expected at most", "-n", "1:9223372036854775807:x2"),
            ("--timeout: expected a positive number, got 'soon'", "--timeout", "soon"),
            ("a generated matrix cannot be pruned", "--prune", "block:4x4:0.5"),
            ("--seed: expected an integer from 0 to 18446744073709551615, got '-1'", "--seed", "-1"),
            (f"--seed: expected an integer from 0 to {2**64 - 1}, got '{2**64}'", "--seed", 2**64),
            ("--calls: expected an integer from 0 to 9223372036854775807, got '-1'", "--calls", "-1"),
            (f"--calls: expected an integer from 0 to {2**63 - 1}, got '{2**63}'", "--calls", 2**63),
            ("-n '8,': expected a comma-separated list without empty items", "-n", "8,"),
            ("--c-type fp8_e4m3: expected fp32, fp16, bf16, or fp64 with --precision fp64", "--c-type", "fp8_e4m3"),
            ("--c-type int8: expected fp32, fp16, bf16, or fp64", "--c-type", "int8"),
            ("--c-type fp64: expected --precision fp64", "--c-type", "fp64", "--precision", "fp32"),
            ("--c-type fp16: expected a --precision other", "--c-type", "fp16", "--precision", "fp64"),
            ("--reorder 'none,,rcm': expected a comma-separated list", "--reorder", "none,,rcm"),
            ("--columns ',hot': expected a comma-separated list", "--columns", ",hot"),
            ("--json: expected a file to write, got '--quiet' (./--quiet names one)", "--json", "--quiet"),
            ("--csv: expected a file to write, got an empty name", "--csv", ""),
            ("--batch: expected an integer, got 'eight'", "--batch", "eight"),
            ("--alpha: expected a number, got 'half'", "--alpha", "half"),
        ):
            with self.subTest(args=args):
                self.refused(expected, SMALL, *args)
        self.assert_one_line(self.spmmbench("run", SMALL, "-q", "-k", "cpu_csr", "--device", 7), 1,
                             "device 7: this machine has ")
        self.refused("only dense inputs", DATA / "fem2d_plate.mtx.gz", "--prune", "block:4x4:0.5")
        self.refused("unknown generator 'nonsense'", "gen:nonsense")
        self.refused("has no option 'color'", "gen:uniform?color=red")

    def test_unknown_kernels_and_commands_are_refused_with_those_that_exist(self):
        result = self.spmmbench("run", SMALL, "-q", "-k", "no_such")
        self.assert_one_line(result, 1, "no kernel matches 'no_such'; there are: ")
        self.assertIn("cpu_csr", result.stderr)
        result = self.spmmbench("run", SMALL, "-q", "-k", "cpu_csr?colour=blue")
        self.assert_one_line(result, 1, "cpu_csr has no options (given: colour)")
        self.assert_one_line(self.spmmbench("run", SMALL, "-q", "-k", "cpu_csr", "-x", "*"), 1, "excluded")
        self.assert_one_line(self.spmmbench("measure"), 1, "subcommand: run, ")
        self.assert_one_line(self.spmmbench(), 1, "subcommand")
        self.assert_one_line(self.spmmbench("list", "colours"), 1, "colours")
        self.assert_one_line(self.spmmbench("inspect", SMALL, "--formats", ""), 1, "--formats: expected a value, got an empty")
        self.assert_one_line(self.spmmbench("list", "kernls"), 1, "did you mean 'kernels'?")
        self.assert_one_line(self.spmmbench("rnu"), 1, "did you mean 'run'?")
        self.assert_one_line(self.spmmbench("run", SMALL, "-q", "-k", "cpu_crs"), 1,
                             "did you mean 'cpu_csr'?")

    def test_unwritable_output_is_found_before_the_first_measurement(self):
        for flag in ("--json", "--csv"):
            self.refused("cannot be written: Not a directory", SMALL, flag, SOURCE / "LICENSE/out")
            self.refused("is a directory", SMALL, flag, self.folder)

    def test_an_unreadable_input_costs_its_own_rows_only(self):
        out = self.folder / "out.json"
        bad = self.file("bad.mtx", HTML_PAGE)
        self.refused("an HTML page", SMALL, bad, SMALL + "&seed=2", "--json", out)
        document = read(out)
        self.assertEqual([row["status"] for row in document["rows"]], ["ok", "ok"])
        self.assertFalse(document["complete"])
        self.assertFalse((self.folder / "out.json.journal").exists(), "the run ended")
        bad.write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1\n")
        self.run_cpu(SMALL, bad, SMALL + "&seed=2", "--json", out, "--resume")
        self.assertEqual(len(read(out)["rows"]), 3)
        self.assertTrue(read(out)["complete"])

    def test_a_matrix_too_large_for_the_memory_costs_its_own_rows_only(self):
        out = self.folder / "out.json"
        args = (SMALL, "gen:uniform?rows=400000000&cols=9&nnz_per_row=1", SMALL + "&seed=2")
        result = self.run_with_addresses(2000000, *args, "--quiet", "--json", out)
        self.assert_one_line(result, 1, "which need 4.8 GB")
        self.assertEqual([row["status"] for row in read(out)["rows"]], ["ok", "ok"])
        # 160 MB of row pointers are read; there is no room for 80 MB of row lengths, of which quantiles are taken.
        tall = self.file("tall.mtx", COORDINATE + "20000000 1 1\n1 1 1\n")
        result = self.run_with_addresses(self.least_addresses(SMALL) + 200_000, SMALL, tall, SMALL + "&seed=2", "--quiet",
                                         "--json", out, "--overwrite")
        self.assert_one_line(result, 1, "tall.mtx: out of host memory")
        self.assertEqual([row["status"] for row in read(out)["rows"]], ["ok", "ok"])

    def test_operands_too_large_for_the_memory_fail_their_case(self):
        out = self.folder / "out.json"
        result = self.run_cpu(SMALL, "-n", f"8,{10**12},16", "--json", out)
        self.assertEqual(result.returncode, 4, result.stderr)
        rows = read(out)["rows"]
        self.assertEqual([row["status"] for row in rows], ["ok", "failed", "ok"])
        self.assertRegex(rows[1]["reason"], r"^out of host memory: needs [0-9.]+ GiB, [0-9.]+ GiB free$")
        self.assertIn("failed: out of host memory", result.stdout)
        wide = "gen:uniform?rows=1&cols=4194304&nnz_per_row=1"  # B: 2^64 bytes
        result = self.run_cpu(wide, "-n", 2**40, "--precision", "fp32", "--json", out, "--overwrite")
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertRegex(read(out)["rows"][0]["reason"], "^out of host memory: needs [0-9.]+ GiB")

    def test_a_nan_of_a_belongs_into_the_result(self):
        a = self.file("a.bin", array.array("f", [1.0] * 1999 + [float("nan")]).tobytes())
        out = self.folder / "out.json"
        result = self.run_cpu(a, "--dims", 50, 40, "--json", out)
        self.assertEqual(result.returncode, 0, result.stderr)
        row = read(out)["rows"][0]
        self.assertEqual(row["status"], "ok")
        self.assertTrue(row["exact"]["passed"])
        self.assertEqual(row["verify"]["incomparable"], 0)


if __name__ == "__main__":
    main()
