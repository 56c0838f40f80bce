#!/usr/bin/env python3
"""scripts/slim.py keeps of a recorded run what results/ needs: medians, choices, or the document in few digits."""

import csv
import json
import os
import subprocess
import unittest

from report_case import ReportCase, main, row

PROGRAM = os.environ.get("SPMMBENCH")


class SlimTest(ReportCase):
    def slim(self, *args, code=0):
        out = self.folder / "out"
        result = self.run_script("slim.py", *args, "--out", out)
        self.assertEqual(result.returncode, code, result.stderr)
        return out

    def table(self, *args):
        with open(self.slim(*args), newline="") as file:
            return list(csv.DictReader(file))

    def test_medians_are_those_of_the_rows_that_are_right(self):
        run = self.write([row("m", "rsh", 8.1234567), row("m", "wrong", 1.0, status="wrong"), row("m", "none", None)])
        (line,) = self.table("medians", f"general={run}")
        self.assertEqual((line["group"], line["kernel"], line["hot_median_us"]), ("general", "rsh", "8.1235"))

    def test_medians_of_medians_are_the_same(self):
        run = self.write([row("m", "rsh", 8.1234567), row("m", "auto", 9.0)])
        first = self.slim("medians", f"general={run}").read_text()
        again = self.folder / "first.csv"
        again.write_text(first)
        self.assertEqual(self.slim("medians", again).read_text(), first)

    def test_calls_are_the_times_of_the_curve_with_a_column_for_each_number(self):
        measured = {**row("m", "rsh", 8.0), "calls_us": {"1": 900.1234567, "10": 981.0}, "a_memory": "cuda"}
        run = self.write([measured, row("m", "auto", 9.0)])
        (line,) = self.table("calls", run)
        found = (line["kernel"], line["a_memory"], line["1"], line["10"])
        self.assertEqual(found, ("rsh", "cuda", "900.12", "981"))

    def test_a_choice_stands_beside_the_least_times_of_its_own_case(self):
        run = self.write([row("m", "auto", 9.0), row("m", "auto?tune=1", 12.0), row("m", "rsh", 8.0),
                          row("m", "cusparse_csr_alg2", 20.0), row("m", "cusparse_csr_default", 30.0),
                          row("m", "auto", 5.0, n=64), row("m", "async_wcsr", 4.0, n=64)])  # fmt: skip
        lines = self.table("choices", run)
        found = [(x["kernel"], x["n"], x["fastest"], x["fastest_us"], x["cusparse_us"]) for x in lines]
        self.assertEqual(found, [("auto", "128", "rsh", "8", "20"), ("auto?tune=1", "128", "rsh", "8", "20"),
                                 ("auto", "64", "async_wcsr", "4", "")])  # fmt: skip

    def test_filters_choose_kernels_groups_and_columns(self):
        run = self.write([row("m", "rsh", 8.0), row("m", "auto", 9.0), row("m", "rsh", 4.0, n=64)])
        lines = self.table("medians", f"a={run}", f"b={run}", "--kernels", "r*", "--groups", "b", "--n", "64")
        self.assertEqual([(x["group"], x["kernel"], x["n"]) for x in lines], [("b", "rsh", "64")])

    @unittest.skipIf(PROGRAM is None, "SPMMBENCH is not set")
    def test_a_slim_document_prints_the_same_table(self):
        run = self.write([row("m", "rsh", 8.1234567), row("m", "cusparse_csr_default", 20.0), row("m", "none", None)])
        shown = [
            subprocess.run([PROGRAM, "show", path], capture_output=True, text=True, check=True).stdout.split("\n\n", 1)[1]
            for path in (run, self.slim("document", run))
        ]
        self.assertEqual(shown[0], shown[1])
        rows = json.loads(self.slim("document", run, "--no-skipped").read_text())["rows"]
        self.assertEqual([one["kernel"] for one in rows], ["rsh", "cusparse_csr_default"])

    def test_a_file_that_is_no_run_is_refused_in_one_line(self):
        bad = self.folder / "bad.json"
        bad.write_text("{")
        empty = self.folder / "list.json"
        empty.write_text("[]")
        for args in (("medians", bad), ("choices", self.folder / "missing.csv"), ("document", bad), ("document", empty),
                     ("calls", f"group={empty}")):
            result = self.run_script("slim.py", *args, "--out", self.folder / "out")
            self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result.stderr)


if __name__ == "__main__":
    main()
