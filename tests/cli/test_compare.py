#!/usr/bin/env python3
"""`spmmbench compare`: verdicts, exit codes, outputs. Times are drawn with a fixed seed into the
documents of one real run, as noise within a run and levels that differ between runs."""

import copy
import json
import math
import pathlib
import random
import re
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree

from cli_case import ENVIRONMENT, PROGRAM, SMALL, CliCase, main, read, write


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

    def measured(self, name, slow=(), run_noise=0.002, sample_noise=0.004, count=15, kind="cuda"):
        """A run of the same cases; those of `slow` (N to factor) take longer."""
        document = copy.deepcopy(self.real)
        document["context"]["device"]["kind"] = kind
        for row in document["rows"]:
            level = 20 * row["n"] * dict(slow).get(row["n"], 1)
            level *= math.exp(self.random.gauss(0, run_noise))
            samples = [level * math.exp(self.random.gauss(0, sample_noise)) for _ in range(count)]
            row["hot"].update(samples_us=samples, median_us=sorted(samples)[count // 2], n=count)
            row["device_index"] = 0 if kind == "cuda" else None
        write(self.folder / name, document)
        return self.folder / name

    def side(self, name, slow=(), count=7, **noise):
        """Several runs of a side, as one argument."""
        return ",".join(str(self.measured(f"{name}-{i}.json", slow, **noise)) for i in range(count))

    def compare(self, *args, code=0):
        result = self.spmmbench("compare", *args)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def test_runs_of_one_build_are_never_slower_in_twenty_repetitions(self):
        for _ in range(20):
            self.assertNotIn("SLOWER", self.compare(self.side("base"), self.side("new")).stdout)

    def test_nor_are_runs_that_differ_or_single_runs_which_cannot_tell(self):
        for _ in range(20):
            noisy = (self.side("base", count=5, run_noise=0.05), self.side("new", count=5, run_noise=0.05))
            single = (self.measured("base.json"), self.measured("new.json"))
            for base, new in (noisy, single):
                result = self.compare(base, new, code=6)
                self.assertNotIn("SLOWER", result.stdout)
                self.assertRegex(result.stdout, r"\nNOT ABLE TO TELL: in \d+ geometric means? and 12 cases a ")

    def test_a_planted_slowdown_of_five_percent_is_found(self):
        for _ in range(5):
            result = self.compare(self.side("base"), self.side("new", {4: 1.05}), code=3)
            slower = [line for line in result.stdout.splitlines() if line.endswith("SLOWER")]
            self.assertEqual(len(slower), 1, result.stdout)
            self.assertIn(" n=4 fp16 cpu_csr", slower[0])
            self.assertIn("BASE: 7 runs of ", result.stdout)
            self.assertTrue(result.stdout.endswith("REGRESSION: 1 SLOWER case\n"), result.stdout)

    def test_a_slowdown_of_every_case_shows_in_the_geometric_mean(self):
        everywhere = {n: 1.05 for n in range(1, 13)}
        result = self.compare(self.side("base", run_noise=0.005), self.side("new", everywhere, run_noise=0.005),
                              code=3)
        self.assertRegex(result.stdout, r"\nfp16 cpu_csr +12 +1\.0[45]\d+ +[\d.]+ SLOWER\n")

    def test_one_run_of_each_side_tells_a_factor_of_five(self):
        base, new = self.measured("base.json"), self.measured("new.json", {4: 5})
        self.assertIn("REGRESSION: 1 SLOWER case", self.compare(base, new, code=3).stdout)

    def test_a_few_runs_that_take_levels_are_never_slower_on_a_cpu(self):
        for count in (2, 3):
            for _ in range(10):
                sides = []
                for side in ("base", "new"):
                    levels = [{n: self.random.choice((1, 1, 1.4)) for n in range(1, 13)} for _ in range(count)]
                    sides.append(",".join(str(self.measured(f"{side}-{i}.json", levels[i], kind="host"))
                                          for i in range(count)))  # fmt: skip
                result = self.compare(*sides, "--resolve", 5, code=6)
                self.assertRegex(result.stdout, r"\nNOT ABLE TO TELL: in \d geometric means? and 12 cases a ")

    def test_what_could_go_unseen_says_how_many_runs_would_do(self):
        result = self.compare(self.side("base", count=3), self.side("new", count=3), "--resolve", 0.025, code=6)
        self.assertRegex(result.stdout, r"\n  remedy: about \d+ runs of each side, or .*--resolve-case 0\.\d\d\n")
        self.compare(self.side("base"), self.side("new"), "--resolve", 0.9)

    def test_a_speed_up_is_no_regression(self):
        result = self.compare(self.side("base", {4: 1.05}), self.side("new"))
        self.assertIn("1 FASTER", result.stdout)

    def test_lost_and_newly_wrong_rows_are_a_regression(self):
        base, new = self.measured("base.json"), self.measured("new.json")
        document = read(new)
        gone = document["rows"].pop()
        write(new, document)
        options = ("--resolve", 0.5)
        result = self.compare(base, new, *options, code=3)
        self.assertRegex(result.stdout, r"n=12 fp16 cpu_csr .* MISSING\n    no row in NEW")
        self.assertIn("REGRESSION: 1 MISSING case", result.stdout)
        self.assertIn("1 MISSING", self.compare(base, new, *options, "--allow-missing").stdout)
        row = document["rows"][0]
        row.update(status="wrong", reason="error 7 x bound at C(1, 2)", hot=None, cold=None)
        write(new, document)
        result = self.compare(base, new, *options, "--allow-missing", code=3)
        self.assertRegex(result.stdout, r"n=1 fp16 cpu_csr .* NEWLY WRONG\n    wrong: error 7 x bound")
        self.assertIn("1 fixed", self.compare(new, base, *options).stdout)
        self.assertEqual(gone["n"], 12)

    def test_json_and_junit_have_every_case_and_verdict(self):
        base, new = self.side("base"), self.side("new", {4: 1.2})
        out, junit = self.folder / "cmp.json", self.folder / "cmp.xml"
        self.compare(base, new, "--json", out, "--junit", junit, code=3)
        comparison = read(out)
        self.assertTrue(comparison["regression"])
        self.assertEqual(len(comparison["cases"]), 12)
        self.assertEqual(comparison["cases"][0]["verdict"], "SLOWER")
        self.assertAlmostEqual(comparison["cases"][0]["times"]["ratio"], 1.2, delta=0.02)
        self.assertTrue(all(0.02 < case["times"]["smallest_seen"] < 0.05 for case in comparison["cases"]))
        self.assertEqual([group["name"] for group in comparison["groups"]], ["fp16 cpu_csr"])
        suite = xml.etree.ElementTree.parse(junit).getroot()
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("13", "1"))
        self.assertEqual(len(suite.findall("testcase/failure")), 1)

    def test_the_table_shows_what_changed_and_all_on_demand(self):
        base, new = self.side("base"), self.side("new", {4: 1.2})
        brief = self.compare(base, new, code=3).stdout
        whole = self.compare(base, new, "--all", code=3).stdout
        self.assertEqual(whole.count(" cpu_csr  "), 13)
        self.assertLess(brief.count(" cpu_csr  "), 13)
        self.assertLessEqual(max(map(len, whole.splitlines())), 100)
        self.assertRegex(brief, r"\ngeometric mean +cases new/base seen % verdict\nfp16 cpu_csr +12 +1\.0")

    def test_the_minimum_effect_decides_what_counts(self):
        base, new = self.side("base"), self.side("new", {4: 1.05})
        result = self.compare(base, new, "--min-effect", 0.1, "--resolve", 0.2)
        self.assertNotIn("SLOWER", result.stdout)
        self.assertIn("minimum effect 10 %", result.stdout)

    def test_other_devices_protocols_and_precisions_are_refused_unless_forced(self):
        base = self.measured("base.json")
        for what, change in (
            ("device.name differs: ", lambda d: d["context"]["device"].update(name="another")),
            ("protocol.max_samples differs: '5' and '9'",
             lambda d: d["context"]["protocol"].update(max_samples="9")),
            ("seed differs: '1' and '9'", lambda d: d["context"].update(seed=9)),
            ("rows.precision differs: fp16 is in ", lambda d: [r.update(precision="tf32") for r in d["rows"]]),
        ):
            other = self.measured("other.json")
            document = read(other)
            change(document)
            write(other, document)
            result = self.spmmbench("compare", base, other)
            self.assert_one_line(result, 5, f"{base} and {other}: {what}")
            if "precision" not in what:
                self.compare(base, other, "--force", "--resolve", 0.5)

    def test_the_same_run_twice_on_a_side_is_refused(self):
        base, new = self.measured("base.json"), self.measured("new.json")
        link, copied = self.folder / "link.json", self.folder / "copy.json"
        link.symlink_to(base)
        copied.write_bytes(base.read_bytes())
        for again in (base, link, copied, self.folder / "." / "base.json"):
            for sides in ((f"{base},{again}", new), (new, f"{base},{again}")):
                self.assert_one_line(self.spmmbench("compare", *sides), 1, f"{base} and {again}: expected different")

    def test_the_same_run_is_known_in_another_form_too(self):
        base, new, again = self.measured("base.json"), self.measured("new.json"), self.folder / "again.json"
        document = read(base)
        again.write_text(json.dumps(document, indent=1))
        refused = f"{base} and {again}: expected different runs"
        self.assert_one_line(self.spmmbench("compare", f"{base},{again}", new), 1, refused)
        again.write_text(self.spmmbench("show", base, "-n", "4", "--format", "json").stdout)
        self.assert_one_line(self.spmmbench("compare", new, f"{base},{again}"), 1, refused)

    def test_a_run_on_both_sides_is_refused(self):
        base, new, again = self.measured("base.json"), self.measured("new.json"), self.folder / "again.json"
        for sides in ((base, base), (f"{base},{new}", base), (base, f"{new},{base}")):
            self.assert_one_line(self.spmmbench("compare", *sides), 1,
                                 f"{base} and {base}: expected different runs as BASE and NEW, got the same twice")
        refused = f"{base} and {again}: expected different runs as BASE and NEW"
        again.write_text(json.dumps(read(base), indent=1))
        self.assert_one_line(self.spmmbench("compare", base, f"{new},{again}", "--force"), 1, refused)
        self.spmmbench("merge", again, base, "--overwrite")
        self.assert_one_line(self.spmmbench("compare", base, again), 1, refused)

    def test_one_bad_run_of_base_hides_no_slowdown(self):
        new = self.side("new", {4: 3})
        for status in ("timeout", "failed", "wrong", "skipped"):
            base = self.side("base")
            bad = pathlib.Path(base.split(",")[3])
            document = read(bad)
            row = next(row for row in document["rows"] if row["n"] == 4)
            row.update(status=status, reason="planted", hot=None, cold=None)
            write(bad, document)
            result = self.compare(base, new, code=3)
            self.assertRegex(result.stdout, rf" n=4 .* SLOWER\n    6 of 7 runs of BASE: {status}: planted\n")

    def test_names_may_hold_commas(self):
        folder = self.folder / "a,b"
        folder.mkdir()
        for name in ("base", "base,2", "new,", ",new"):
            (folder / f"{name}.json").write_bytes(self.measured("run.json").read_bytes())
        base = f"{folder}/base.json,{folder}/base,2.json"
        new = f"{folder}/new,.json,{folder}/,new.json"
        result = self.compare(base, new, "--resolve", 0.9, "--json", self.folder / "cmp.json")
        self.assertIn("BASE: 2 runs", result.stdout)
        self.assertEqual(read(self.folder / "cmp.json")["new"]["files"],
                         [f"{folder}/new,.json", f"{folder}/,new.json"])
        self.assert_one_line(self.spmmbench("compare", f"{base},no,such.json", new), 1, "no: cannot be opened")

    def test_calibration_measures_the_cases_again(self):
        document, out = copy.deepcopy(self.real), self.folder / "calibration.json"
        document["rows"] = document["rows"][:2]
        base = self.folder / "base.json"
        write(base, document)
        result = self.spmmbench("compare", "--calibrate", out, "--repeat", 3, base)
        if result.returncode == 6:  # this machine is too busy, which must be said
            self.assertRegex(result.stderr, r"one run against another resolves \d+ % only, .* stop what else")
            self.assertFalse(out.exists())
        else:
            self.assertRegex(result.stdout, r"^3 runs of 2 cases: one run against another resolves [\d.]+ %\n$")
            calibration = read(out)
            self.assertEqual([len(case["medians_us"]) for case in calibration["cases"]], [3, 3])
            self.assertLessEqual(calibration["resolution"], 0.5)
        self.assert_one_line(self.spmmbench("compare", "--calibrate", out, "--repeat", 2, base), 1,
                             "expected at least 3")
        self.assert_one_line(self.spmmbench("compare", "--calibrate", base / "x", base), 1,
                             "cannot be written: Not a directory")
        del document["context"]["protocol"]["max_seconds"]
        write(base, document)
        self.assert_one_line(self.spmmbench("compare", "--calibrate", out, base), 1,
                             f"{base}: the run's protocol has no max_seconds")

    def test_rows_that_no_run_has_written_are_refused(self):
        def row(change):
            return lambda document: document["rows"][0].update(change)

        base, fresh = self.folder / "base.json", self.folder / "fresh.json"
        write(base, self.real)
        for edit, words in (
            (row({"verify": None}), "is ok without a verification"),
            (lambda d: d["rows"][0]["verify"].update(error_over_bound=50), "is ok with an error of 50 x its bound"),
            (lambda d: d["rows"][0]["hot"].update(median_us=0), "has a hot median of 0 us, and samples with one of"),
            (lambda d: d["rows"].append(d["rows"][0]), "has a second row at N = "),
        ):
            document = copy.deepcopy(self.real)
            edit(document)
            write(fresh, document)
            for command in (("compare", base, fresh), ("show", fresh)):
                result = self.spmmbench(*command)
                self.assert_one_line(result, 1, f"{fresh}: 'rows[")
                self.assertIn(words, result.stderr)

    def measured_matrix(self):
        """A matrix in a file, and a document of its one case."""
        matrix, base = self.folder / "a.mtx", self.folder / "base.json"
        self.spmmbench("generate", SMALL, matrix)
        self.run_cpu(matrix, "-n", "4", "--json", base)
        return matrix, base

    def test_a_calibration_of_a_matrix_that_was_replaced_is_refused(self):
        matrix, base = self.measured_matrix()
        out = self.folder / "calibration.json"
        self.spmmbench("generate", SMALL + "&seed=7", matrix)
        result = self.spmmbench("compare", "--calibrate", out, "--repeat", 3, base)
        self.assertEqual(result.returncode, 5, result.stderr)
        self.assertIn(f"{base}: {matrix} n=4 cpu_csr is another case now: the matrix has changed since; ",
                      result.stderr)
        self.assertFalse(out.exists())

    def test_a_calibration_replaces_nothing_that_it_reads(self):
        matrix, base = self.measured_matrix()
        link = self.folder / "link.json"
        link.symlink_to(matrix)
        content = matrix.read_bytes()
        for out in (matrix, link, base):
            self.assert_one_line(self.spmmbench("compare", "--calibrate", out, "--repeat", 3, base), 1,
                                 f"{out}: is the input ")
        self.assertEqual(matrix.read_bytes(), content)

    def test_options_that_contradict_each_other_are_refused(self):
        base, out = self.measured("base.json"), self.folder / "out.json"
        for options in (("--json", "x"), ("--junit", "y"), ("--all",), ("--cold",), ("--min-effect", 0.5),
                        ("--alpha", 0.1), ("--resolve", 0.1), ("--resolve-case", 0.1), ("--allow-missing",),
                        ("--calibration", base)):
            self.assert_one_line(self.spmmbench("compare", "--calibrate", out, base, *options), 1, options[0])
        self.assert_one_line(self.spmmbench("compare", base, base, "--repeat", 5), 1, "--repeat")
        self.assertFalse(out.exists())

    def test_standard_output_has_one_form_of_the_answer(self):
        base, new = self.side("base"), self.side("new")
        for name in ("-", "/dev/stdout", "/dev/fd/1"):
            self.assertEqual(json.loads(self.compare(base, new, "--json", name).stdout)["regression"], False)
            for other in ("-", "/dev/stdout"):
                result = self.spmmbench("compare", base, new, "--json", name, "--junit", other)
                self.assert_one_line(result, 1, "standard output: expected one of")
        xml.etree.ElementTree.fromstring(self.compare(base, new, "--junit", "/dev/stdout").stdout)

    def calibrate_until(self, measured, disturb, *inputs):
        """Disturbs the calibration of one case when so many measurements have begun, each in a folder of its own."""
        base, out, scratch = (self.folder / name for name in ("base.json", "calibration.json", "scratch"))
        self.run_cpu(*inputs, "-n", "4", "--json", base)
        scratch.mkdir()
        process = subprocess.Popen(
            [PROGRAM, "compare", "--calibrate", out, "--repeat", "10000", base],
            env={**ENVIRONMENT, "TMPDIR": str(scratch)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        seen = set()
        while len(seen) < measured:
            self.assertIsNone(process.poll(), "ended before it was disturbed")
            seen.update(path.name for path in scratch.iterdir())
            time.sleep(0.002)
        disturb(process)
        _, errors = process.communicate(timeout=60)
        return process.returncode, errors, out

    def assert_whole_repetitions(self, code, errors, out, expected):
        if code == 6:  # this machine is too busy, which must be said
            self.assertIn("one run against another resolves ", errors)
            return
        self.assertEqual(code, expected, errors)
        kept = int(re.search(r"; (\d+) of 10000 repetitions are kept\n$", errors).group(1))
        self.assertGreaterEqual(kept, 3)
        self.assertEqual([len(case["medians_us"]) for case in read(out)["cases"]], [kept])

    def test_ctrl_c_keeps_the_whole_repetitions_of_a_calibration(self):
        self.assert_whole_repetitions(*self.calibrate_until(5, lambda p: p.send_signal(signal.SIGINT), SMALL), 130)

    def test_a_failing_case_keeps_the_whole_repetitions_of_a_calibration(self):
        matrix = self.folder / "a.mtx"
        self.spmmbench("generate", SMALL, matrix)
        self.assert_whole_repetitions(*self.calibrate_until(5, lambda _: matrix.unlink(), matrix), 1)

    def test_a_calibration_of_too_few_repetitions_is_not_written(self):
        code, errors, out = self.calibrate_until(1, lambda p: p.send_signal(signal.SIGINT), SMALL)
        self.assertEqual(code, 130, errors)
        self.assertIn("interrupted; nothing is kept of 0 whole repetitions: expected at least 3\n", errors)
        self.assertFalse(out.exists())

    def calibration(self, deviation):
        """A calibration of the cases, as if their runs had differed by so much."""
        keys = [
            "|".join(str(value) for value in (row["matrix"]["name"], row["matrix"]["sha256"], row["n"],
                     row["kernel"], row["precision"], row["c_type"], row["layout"], row["reorder"]))
            for row in self.real["rows"]
        ]  # fmt: skip
        context = read(self.measured("calibrated.json"))["context"]
        cases = [{"case": key, "medians_us": [20 * math.exp(self.random.gauss(0, deviation)) for _ in range(20)]}
                 for key in keys]
        write(self.folder / "calibration.json",
              {"calibration_version": 2, "context": context, "cases": cases})
        return self.folder / "calibration.json"

    def test_a_calibration_lets_one_run_of_each_side_tell(self):
        base, new = self.measured("base.json"), self.measured("new.json", {4: 1.1})
        self.compare(base, new, code=6)
        result = self.compare(base, new, "--calibration", self.calibration(0.003), code=3)
        self.assertIn("REGRESSION: 1 SLOWER case", result.stdout)

    def test_a_calibration_that_resolves_nothing_is_refused_with_advice(self):
        base, new = self.measured("base.json"), self.measured("new.json")
        result = self.spmmbench("compare", base, new, "--calibration", self.calibration(2))
        self.assert_one_line(result, 6, f"{self.folder}/calibration.json: one run against another resolves ")
        self.assertIn("fix its clocks", result.stderr)

    def test_bad_input_is_one_line(self):
        base = self.measured("base.json")
        self.assert_one_line(self.spmmbench("compare", base), 1, "BASE NEW")
        self.assert_one_line(self.spmmbench("compare", base, "no_such.json"), 1, "cannot be opened")
        bad = self.folder / "bad.json"
        bad.write_text("{}")
        self.assert_one_line(self.spmmbench("compare", base, bad), 1, "expected a result document")
        bad.write_text(base.read_text()[:1000])
        self.assert_one_line(self.spmmbench("compare", base, bad), 1, "bad.json: ")
        for damage, what in ((lambda d: d["rows"][2].pop("hot"), "rows[2]: expected the field 'hot'"),
                             (lambda d: d["context"].pop("device"), "context: expected the field 'device'")):
            document = read(base)
            damage(document)
            write(bad, document)
            self.assert_one_line(self.spmmbench("compare", base, bad), 1, f"{bad}: {what}")
        self.assert_one_line(self.spmmbench("compare", base, f"{base},"), 1, "empty items")
        self.assert_one_line(self.spmmbench("compare", base, f",{base}"), 1, "empty items")
        self.assert_one_line(self.spmmbench("compare", base, base, "--json", base / "y"), 1, "base.json")
        self.assert_one_line(self.spmmbench("compare", base, base, "--calibration", base), 1,
                             "expected the output of `spmmbench compare --calibrate`")
        calibration = self.calibration(0.01)
        document = read(calibration)
        document["cases"][0]["medians_us"][1] = 0
        write(calibration, document)
        self.assert_one_line(self.spmmbench("compare", base, base, "--calibration", calibration), 1,
                             f"{calibration}: medians_us: expected positive times")
        del document["context"]["device"]
        write(calibration, document)
        self.assert_one_line(self.spmmbench("compare", base, base, "--calibration", calibration), 1,
                             f"{calibration}: ")
        for alpha in ("1", "nan", "inf", "-1", "0", "x"):
            self.assert_one_line(self.spmmbench("compare", base, base, "--alpha", alpha), 1, "--alpha")
        for option in ("--min-effect", "--resolve", "--resolve-case"):
            for value in ("nan", "inf", "-1", "0"):
                self.assert_one_line(self.spmmbench("compare", base, base, option, value), 1, option)
        calibration = self.calibration(0.01)
        for change, what in (({"calibration_version": 1}, "calibration version 1, expected 2"),
                             ({"cases": []}, "no case has two times")):
            write(calibration, {**read(calibration), **change})
            self.assert_one_line(self.spmmbench("compare", base, base, "--calibration", calibration), 1,
                                 f"{calibration}: {what}")
            calibration = self.calibration(0.01)


if __name__ == "__main__":
    main()
