#!/usr/bin/env python3
"""`spmmbench compare`: verdicts, exit codes, outputs. Times are drawn with a fixed seed into the
documents of one real run, as noise within a run and levels that differ between runs."""

import copy
import math
import pathlib
import random
import tempfile
import xml.etree.ElementTree

from cli_case import SMALL, CliCase, main, read, write


class CompareTest(CliCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "real.json"
            cls().run_cpu(SMALL, "-n", "1:12:1", "--json", out)
            cls.real = read(out)

    def setUp(self):
        super().setUp()
        self.random = random.Random(1)

    def measured(self, name, slow=(), run_noise=0.002, sample_noise=0.004, count=15):
        """A run of the same cases; those of `slow` (N to factor) take longer."""
        document = copy.deepcopy(self.real)
        document["context"]["device"]["kind"] = "cuda"
        for row in document["rows"]:
            level = 20 * row["n"] * dict(slow).get(row["n"], 1)
            level *= math.exp(self.random.gauss(0, run_noise))
            samples = [level * math.exp(self.random.gauss(0, sample_noise)) for _ in range(count)]
            row["hot"].update(samples_us=samples, median_us=sorted(samples)[count // 2], n=count)
        write(self.folder / name, document)
        return self.folder / name

    def compare(self, *args, code=0):
        result = self.spmmbench("compare", *args)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def test_a_run_against_itself_is_never_slower_in_twenty_repetitions(self):
        for _ in range(20):
            base, new = self.measured("base.json"), self.measured("new.json")
            self.assertNotIn("SLOWER", self.compare(base, new).stdout)

    def test_nor_are_runs_that_differ_when_several_are_given(self):
        for _ in range(20):
            noisy = [self.measured(f"{i}.json", run_noise=0.02) for i in range(10)]
            base, new = (",".join(map(str, side)) for side in (noisy[::2], noisy[1::2]))
            self.assertNotIn("SLOWER", self.compare(base, new).stdout)

    def test_a_planted_slowdown_of_five_percent_is_found(self):
        for _ in range(5):
            base, new = self.measured("base.json"), self.measured("new.json", {4: 1.05})
            lines = self.compare(base, new, code=3).stdout.splitlines()
            slower = [line for line in lines if line.endswith("SLOWER")]
            self.assertEqual(len(slower), 1, lines)
            self.assertIn(" n=4 fp16 cpu_csr", slower[0])

    def test_it_is_found_in_runs_that_differ_when_several_are_given(self):
        sides = [
            ",".join(str(self.measured(f"{slow}{i}.json", {4: slow}, run_noise=0.008)) for i in range(7))
            for slow in (1, 1.05)
        ]
        result = self.compare(*sides, code=3)
        self.assertEqual(result.stdout.count("SLOWER\n"), 1, result.stdout)
        self.assertIn("BASE: 7 runs of ", result.stdout)

    def test_a_speed_up_is_no_regression(self):
        base, new = self.measured("base.json", {4: 1.05}), self.measured("new.json")
        self.assertIn("1 FASTER", self.compare(base, new).stdout)

    def test_newly_wrong_rows_are_a_regression_and_missing_ones_are_not(self):
        base, new = self.measured("base.json"), self.measured("new.json")
        document = read(new)
        gone = document["rows"].pop()
        write(new, document)
        self.assertIn("1 missing", self.compare(base, new).stdout)
        row = document["rows"][0]
        row.update(status="wrong", reason="error 7 x bound at C(1, 2)", hot=None, cold=None)
        write(new, document)
        result = self.compare(base, new, code=3)
        self.assertRegex(result.stdout, r"n=1 fp16 cpu_csr .* NEWLY WRONG\n    wrong: error 7 x bound")
        self.assertIn("1 fixed", self.compare(new, base).stdout)
        self.assertEqual(gone["n"], 12)

    def test_json_and_junit(self):
        base, new = self.measured("base.json"), self.measured("new.json", {4: 1.2})
        out, junit = self.folder / "cmp.json", self.folder / "cmp.xml"
        self.compare(base, new, "--json", out, "--junit", junit, code=3)
        comparison = read(out)
        self.assertTrue(comparison["regression"])
        self.assertEqual(len(comparison["cases"]), 12)
        self.assertEqual(comparison["cases"][0]["verdict"], "SLOWER")
        self.assertAlmostEqual(comparison["cases"][0]["times"]["ratio"], 1.2, delta=0.02)
        suite = xml.etree.ElementTree.parse(junit).getroot()
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("12", "1"))
        self.assertEqual(len(suite.findall("testcase/failure")), 1)

    def test_the_table_shows_what_changed_and_all_on_demand(self):
        base, new = self.measured("base.json"), self.measured("new.json", {4: 1.2})
        brief = self.compare(base, new, code=3).stdout
        whole = self.compare(base, new, "--all", code=3).stdout
        self.assertEqual(whole.count(" cpu_csr "), 12)
        self.assertLess(brief.count(" cpu_csr "), 12)
        self.assertLessEqual(max(map(len, whole.splitlines())), 100)
        self.assertRegex(brief, r"new / base, geometric mean over 12 cases: 1\.0")

    def test_the_minimum_effect_decides_what_counts(self):
        base, new = self.measured("base.json"), self.measured("new.json", {4: 1.05})
        self.assertNotIn("SLOWER", self.compare(base, new, "--min-effect", "0.1").stdout)
        self.assertIn("minimum effect as given", self.compare(base, new, "--min-effect", "0.1").stdout)

    def test_other_devices_protocols_and_precisions_are_refused_unless_forced(self):
        base = self.measured("base.json")
        for what, change in (
            ("devices differ", lambda d: d["context"]["device"].update(name="another")),
            ("max_samples differs: '5' and '9'", lambda d: d["context"]["protocol"].update(max_samples="9")),
            ("seeds differ", lambda d: d["context"].update(seed=9)),
            ("precision fp16 is in BASE only", lambda d: [r.update(precision="tf32") for r in d["rows"]]),
        ):
            document = read(base)
            change(document)
            other = self.folder / "other.json"
            write(other, document)
            self.assert_one_line(self.spmmbench("compare", base, other), 5, what)
            if "precision" not in what:
                self.compare(base, other, "--force")

    def test_calibration_measures_the_cases_again(self):
        document, out = copy.deepcopy(self.real), self.folder / "calibration.json"
        document["rows"] = document["rows"][:2]
        base = self.folder / "base.json"
        write(base, document)
        result = self.compare("--calibrate", out, "--repeat", 3, base)
        self.assertRegex(result.stdout, r"^3 runs of 2 cases: one run against another resolves [\d.]+ %\n$")
        calibration = read(out)
        self.assertEqual([len(case["medians_us"]) for case in calibration["cases"]], [3, 3])
        self.assertGreaterEqual(calibration["min_effect"], 0.005)
        text = self.compare(base, base, "--calibration", out).stdout
        self.assertIn("minimum effect calibrated", text)
        self.assert_one_line(self.spmmbench("compare", "--calibrate", out, "--repeat", 2, base), 1,
                             "expected at least 3")

    def test_bad_input(self):
        base = self.measured("base.json")
        self.assert_one_line(self.spmmbench("compare", base), 1, "BASE NEW")
        self.assert_one_line(self.spmmbench("compare", base, "no_such.json"), 1, "cannot be opened")
        bad = self.folder / "bad.json"
        bad.write_text("{}")
        self.assert_one_line(self.spmmbench("compare", base, bad), 1, "expected a result document")
        bad.write_text(base.read_text()[:1000])
        self.assert_one_line(self.spmmbench("compare", base, bad), 1, "bad.json: ")
        self.assert_one_line(self.spmmbench("compare", base, f"{base},"), 1, "empty items")
        self.assert_one_line(self.spmmbench("compare", base, base, "--json", self.folder / "x/y"), 1,
                             "cannot be written")
        self.assert_one_line(self.spmmbench("compare", base, base, "--calibration", base), 1,
                             "expected the output of `spmmbench compare --calibrate`")


if __name__ == "__main__":
    main()
