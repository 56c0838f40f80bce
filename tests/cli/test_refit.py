#!/usr/bin/env python3
"""scripts/refit on recorded cases, and the program that computes its amounts of work."""

import collections
import csv
import os
import pathlib
import subprocess
import sys
import unittest

from cli_case import SOURCE, CliCase

PROGRAM = os.environ.get("SPMMBENCH_SELECTION_TERMS")
RECORDED = SOURCE / "results/selection"


def part_of_recorded(folder, step, cases=None):
    """The recorded cases of every so many matrices only."""
    with (RECORDED / "matrices.csv").open() as file:
        matrices = list(csv.reader(file))
    kept = [matrices[0], *matrices[1::step]]
    names = {row[0] for row in kept[1:]}
    lines = (RECORDED / "cases.csv").read_text().splitlines()
    cases = cases or [lines[0], *(line for line in lines[1:] if line.split(",")[1] in names)]
    (folder / "devices.csv").write_text((RECORDED / "devices.csv").read_text())
    (folder / "matrices.csv").write_text("\n".join(",".join(row) for row in kept) + "\n")
    (folder / "cases.csv").write_text("\n".join(cases) + "\n")
    return len(cases) - 1, len(kept) - 1


class Amounts(CliCase):
    def ask(self, folder):
        return subprocess.run([PROGRAM, folder], capture_output=True, text=True, check=False)

    def test_every_line_has_a_value_for_every_amount_of_its_estimator(self):
        part_of_recorded(self.folder, 20)
        result = self.ask(self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        counts, lines = {}, 0
        for line in result.stdout.splitlines():
            us, ms = (half.split() for half in line.split("/"))
            if us[0] == "estimator":
                counts[us[1]] = len(us) - 7, len(ms)
            else:
                self.assertEqual((len(us) - 3, len(ms)), counts[us[1]])
                self.assertIn(us[2], ("full", "trial", "left_out"))
                lines += 1
        self.assertGreater(lines, 100)

    def test_what_it_cannot_read_is_named_in_one_line(self):
        header, first = (RECORDED / "cases.csv").read_text().splitlines()[:2]
        device, matrix, precision, n, layout, *times = first.split(",")
        for row, expected in (
            ((device, "other", precision, n, layout), "cases.csv:2: unknown other"),
            (("other", matrix, precision, n, layout), "cases.csv:2: unknown other"),
            ((device, matrix, precision, "0", layout), "cases.csv:2: n: expected a number above 0"),
            ((device, matrix, "fp7", n, layout), "fp7"),
            ((device, matrix, precision, n, "diagonal"), "cases.csv:2: layout: expected row or col"),
        ):
            with self.subTest(expected):
                part_of_recorded(self.folder, 1, [header, ",".join([*row, *times])])
                self.assert_one_line(self.ask(self.folder), 1, expected)
        self.assert_one_line(self.ask(self.folder / "none"), 1, "cannot be read")


class Refit(CliCase):
    def setUp(self):
        super().setUp()
        try:
            import numpy  # noqa: F401
            import scipy  # noqa: F401
        except ImportError:
            self.skipTest("numpy or scipy is not installed")

    def refit(self, build, folder=None, recorded="cases.csv"):
        command = [sys.executable, SOURCE / "scripts/refit", "--from", (folder or self.folder) / recorded, "--build", build, "--check"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_prints_what_is_lost_on_matrices_that_were_left_out(self):
        cases, matrices = part_of_recorded(self.folder, 12)
        result = self.refit(pathlib.Path(PROGRAM).parents[1])
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        self.assertRegex(lines[0], rf"^\d+ cases of {matrices} matrices$")
        self.assertLessEqual(int(lines[0].split()[0]), cases)
        self.assertEqual([line.split(",")[0] for line in lines if "chosen over fastest" in line], ["two halves by matrix", "all"])
        self.assertRegex(lines[-2], r"^\d+ rows, \d+ factors of calls, \d+ of preparation$")
        self.assertRegex(lines[-1], "^would change: .*csr_merge")

    def test_the_factors_are_those_of_the_recorded_cases(self):
        result = self.refit(pathlib.Path(PROGRAM).parents[1], RECORDED)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.splitlines()[-1], "would change: nothing", "run scripts/refit --from results/selection/cases.csv")

    def test_what_is_expected_of_a_kernel_without_a_case_stays(self):
        part_of_recorded(self.folder, 12)
        with (self.folder / "cases.csv").open() as file:
            rows = list(csv.DictReader(file))
        with (self.folder / "cases.csv").open("w") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows({**row, "gap_slices us": "", "gap_slices ms": ""} for row in rows)
        result = self.refit(pathlib.Path(PROGRAM).parents[1])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("gap_slices", result.stdout.splitlines()[-1])
        self.assertIn("csr_merge", result.stdout.splitlines()[-1])

    def test_preparation_is_fitted_where_the_copy_of_a_does_not_hide_it(self):
        sys.path.insert(0, str(SOURCE / "scripts"))
        import selection_fit

        case, estimator = collections.namedtuple("case", "matrix times"), collections.namedtuple("estimator", "on_device prepare_ms")
        amount, work = collections.namedtuple("amount", "name"), collections.namedtuple("work", "standing prepare_ms")
        cases, amounts = {}, {}
        millions = [0.1 * 1.2**i for i in range(20)] + [90] * 10  # nonzeros; copying a million takes 1 ms
        for index, nonzeros in enumerate(millions):
            noise = 0 if nonzeros < 90 else (-1) ** index * 0.01 * nonzeros
            cases[index] = case(str(index), {"csr_merge": (1, nonzeros), "other": (1, nonzeros + 0.04 + 0.0066 * nonzeros + noise)})
            amounts[index] = {"other": work("full", {"constant": 1, "nonzeros": nonzeros})}
        halves = [{str(index) for index in cases if index % 2 == half} for half in (0, 1)]
        of = {"other": estimator(True, [amount("constant"), amount("nonzeros")])}
        found = selection_fit.fit_preparation(cases, of, amounts, halves)["other"]
        self.assertAlmostEqual(found["constant"], 0.04, 3)
        self.assertAlmostEqual(found["nonzeros"], 0.0066, 4)

    def test_without_the_program_says_how_to_build_it(self):
        part_of_recorded(self.folder, 12)
        self.assert_one_line(self.refit(self.folder), 1, "build with -DSPMMBENCH_TESTS=ON")

    def test_says_which_file_it_cannot_read(self):
        self.assert_one_line(self.refit(self.folder), 1, f"refit: {self.folder}/devices.csv: No such file or directory")
        self.assert_one_line(self.refit(self.folder, recorded="mine.csv"), 1, "expected a file that is called cases.csv")


if __name__ == "__main__":
    if not PROGRAM:
        print("SPMMBENCH_SELECTION_TERMS is not set")
        sys.exit(77)
    unittest.main()
