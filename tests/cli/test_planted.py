"""Products that are nearly right are never called right, however long their rows are."""

import json
import os
import subprocess

import cli_case
from cli_case import ENVIRONMENT, QUICK, SMALL, CliCase, note_verdicts, read

FAULTS = os.environ.get("SPMMBENCH_FAULTS")
N = 8
SHORT_ROWS = 20  # beside the long one
EVERY_LENGTH = ("drop", "twice")
LONG_ONLY = ("swap", "half_sums", "stale_strip", "kept")  # swap needs two nonzeros, rounding many


class PlantedTest(CliCase):
    device = ("--device", "-1")
    prefix = "product_"

    def matrix(self, longest):
        """One row of `longest` nonzeros among shorter ones, in a dense file of CSR."""
        path = self.folder / f"row{longest}.mtx"
        if path.exists():
            return path
        columns = max(longest, 30)
        lines = [f"{1 + SHORT_ROWS // 2} {1 + column} {0.25 + column % 97 / 128}" for column in range(longest)]
        if longest > 1:
            lines += [f"{1 + row} {1 + row} 0.5" for row in range(SHORT_ROWS) if row != SHORT_ROWS // 2]
        path.write_text("%%MatrixMarket matrix coordinate real general\n"
                        f"{SHORT_ROWS} {columns} {len(lines)}\n" + "\n".join(lines) + "\n")
        return path

    def rows(self, longest, faults, *args):
        out = self.folder / "out.json"
        kernels = ",".join(self.prefix + fault for fault in ("right", *faults))
        command = [FAULTS, "run", self.matrix(longest), "-k", kernels, "-n", N, "--json", out,
                   "--no-baselines", *QUICK[2:], *self.device, *args]
        result = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True,
                                env=ENVIRONMENT, timeout=240)
        rows = {row["kernel"].removeprefix(self.prefix): row for row in read(out)["rows"]}
        self.assertEqual(set(rows), {"right", *faults}, result.stderr)
        note_verdicts(rows.values())
        right = rows.pop("right")
        self.assertEqual(right["status"], "ok", right["reason"])
        self.assertTrue(right["exact"]["passed"])
        self.assertEqual(result.returncode, 2)
        return rows

    def assert_caught(self, rows):
        for fault, row in rows.items():
            self.assertEqual(row["status"], "wrong", fault)
            self.assertIsNone(row["hot"], fault)

    def test_a_fault_in_one_nonzero_is_caught_in_rows_of_any_length(self):
        for longest in (1, 1_000, 100_000):
            with self.subTest(longest=longest):
                self.assert_caught(self.rows(longest, EVERY_LENGTH))

    def test_a_fault_in_one_nonzero_of_a_million_is_caught(self):
        rows = self.rows(1_000_000, EVERY_LENGTH, "--precision", "fp32")
        self.assert_caught(rows)
        for row in rows.values():
            self.assertLess(row["verify"]["error_over_bound"], 1, "the bound of such a row hides it")
            self.assertIn("exact test: C(10, ", row["reason"])
            self.assertEqual(row["exact"]["worst_row"], SHORT_ROWS // 2)

    def test_swapped_rounded_and_stale_products_are_caught(self):
        for precision in ("fp32", "bf16"):
            with self.subTest(precision=precision):
                self.assert_caught(self.rows(100_000, LONG_ONLY, "--precision", precision))

    def test_who_drops_the_only_nan_is_wrong_and_who_keeps_it_is_right(self):
        path = self.matrix(5)
        row = f"{1 + SHORT_ROWS // 2} 3 "  # the middle of the longest row
        lines = [f"{row}nan" if line.startswith(row) else line for line in path.read_text().splitlines()]
        path.write_text("\n".join(lines) + "\n")
        rows = self.rows(5, ("drop",))
        self.assert_caught(rows)
        self.assertEqual(rows["drop"]["verify"]["error_over_bound"], "inf")

    def test_a_kernel_that_clears_b_is_wrong_and_the_next_one_has_b_again(self):
        out = self.folder / "out.json"
        command = [FAULTS, "run", self.matrix(5), "-k", f"{self.prefix}clears_b,{self.prefix}right", "-n", N,
                   "--json", out, "--no-baselines", *QUICK[2:], *self.device]
        result = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True,
                                env=ENVIRONMENT, timeout=240)
        self.assertEqual(result.returncode, 2, result.stderr)
        rows = read(out)["rows"]
        note_verdicts(rows)
        self.assertEqual([row["kernel"] for row in rows], [self.prefix + "clears_b", self.prefix + "right"])
        self.assertEqual([row["status"] for row in rows], ["wrong", "ok"])
        self.assertEqual(rows[0]["reason"], "the kernel wrote to B")

    def test_a_sixteen_bit_c_is_tested_too(self):
        self.assert_caught(self.rows(1_000, ("drop", "swap"), "--precision", "fp16", "--c-type", "fp16"))


class LazyTest(CliCase):
    """Kernels that are right wherever the timed launches end, but do not work in most of them."""

    def rows(self, *args):
        out = self.folder / "out.json"
        command = [FAULTS, "run", SMALL, "-k", "product_right,product_skips,product_looks", "-n", N,
                   "--precision", "fp32", "--json", out, *QUICK, *args]
        subprocess.run(list(map(str, command)), check=False, env=ENVIRONMENT, capture_output=True, timeout=60)
        rows = {row["kernel"].removeprefix("product_"): row for row in read(out)["rows"]}
        note_verdicts(rows.values())
        self.assertEqual(rows["right"]["status"], "ok", rows["right"]["reason"])
        return rows

    def test_a_kernel_that_works_in_every_fourth_launch_or_where_c_is_nan_has_no_time(self):
        rows = self.rows()
        for fault in ("skips", "looks"):
            self.assertEqual(rows[fault]["status"], "wrong", fault)
            self.assertIsNone(rows[fault]["hot"])
            self.assertRegex(rows[fault]["reason"], "a (timed|later) launch: error .* x bound|error inf x bound")
            self.assertTrue(rows[fault]["exact"]["passed"])

    def test_a_repeated_launch_that_leaves_c_as_it_was_is_wrong(self):
        rows = self.rows("--repeat-check")
        self.assertIs(rows["right"]["bit_identical"], True)
        self.assertIs(rows["skips"]["bit_identical"], False)
        self.assertEqual(rows["skips"]["status"], "wrong")
        self.assertIn("a repeated launch: error inf x bound", rows["skips"]["reason"])


class PlantedGpuTest(PlantedTest):
    device = ()
    prefix = "product_gpu_"

    def setUp(self):
        super().setUp()
        listing = subprocess.run([FAULTS, "list", "devices", "--json"], capture_output=True, check=True)
        if not json.loads(listing.stdout)["devices"]:
            self.skipTest("no GPU")


if __name__ == "__main__":
    cli_case.main()
