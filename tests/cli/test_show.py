#!/usr/bin/env python3
"""`spmmbench show` prints what a run recorded, filtered as `run` would, also while the run is at work."""

import copy
import csv
import io
import json
import re
import subprocess

from cli_case import PROGRAM, RECORDED, SMALL, SOURCE, CliCase, case_of, journal_line, main, read, recorded_part, write
from report_case import DAMAGES, damaged_at

NOTRE_DAME = recorded_part("web-NotreDame")


class ShowTest(CliCase):
    def show(self, *args, code=0):
        result = self.spmmbench("show", *args)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout

    def recorded(self, *args):
        out = self.folder / "out.json"
        result = self.run_cpu(SMALL, SMALL + "&seed=2", "-n", "8,16", "--precision", "fp16,fp32",
                              *args, "--json", out, "-q")
        self.assertEqual(result.returncode, 0, result.stderr)
        return out

    def rows(self, *args):
        return json.loads(self.show(*args, "--format", "json"))["rows"]

    def test_a_recorded_run_is_the_table_that_run_printed(self):
        out = self.folder / "out.json"
        printed = self.run_cpu(SMALL, SMALL + "&seed=2", "-n", "8,16", "--json", out).stdout
        shown = self.show(out)
        self.assertEqual(shown.split("\n", 2)[2], printed)

    def test_the_header_says_where_and_when(self):
        on_h100 = SOURCE / "results/h100" / RECORDED.name
        for path, matrix, device in ((RECORDED, "web-NotreDame", "NVIDIA H200"), (on_h100, "cora", "NVIDIA H100")):
            header = self.show(path, "-m", matrix).splitlines()[0]
            for part in (str(path), device, "revision ", "20"):
                self.assertIn(part, header)

    def test_the_legend_explains_every_column_and_the_docs_have_it(self):
        header = self.show(NOTRE_DAME, "-m", "web-NotreDame", "--calls", "10").splitlines()[3]
        table = self.show("--legend", "--format", "markdown")
        explained = re.findall(r"^\| `(.*?)` \| \w", table, re.MULTILINE)
        for name in sorted(explained, key=len, reverse=True):
            header = header.replace(name, "")
            self.assertRegex(self.show("--legend"), rf"(?m)^{re.escape(name)} +\w")
        self.assertEqual(header.strip(), "")
        self.assertIn(table, (SOURCE / "docs/methodology.md").read_text())
        self.assert_one_line(self.spmmbench("show"), 1, "RUN is required")

    def test_filters_are_those_of_run(self):
        out = self.recorded()
        self.assertEqual(len(self.rows(out)), 8)
        self.assertEqual({row["n"] for row in self.rows(out, "-n", "8")}, {8})
        self.assertEqual(len(self.rows(out, "--precision", "fp32", "-n", "4:16:x2")), 4)
        self.assertEqual(len(self.rows(out, "-k", "cpu*")), 8)
        self.assertEqual(self.rows(out, "-k", "rsh*"), [])
        self.assertEqual(self.rows(out, "-x", "cpu*"), [])
        self.assertEqual(self.rows(out, "--status", "wrong,failed"), [])
        self.assertEqual(self.rows(out, "--reorder", "rsh"), [])
        names = {row["matrix"]["name"] for row in self.rows(out)}
        self.assertEqual(len(names), 2)
        one = next(name for name in names if "seed=2" in name)
        self.assertEqual({row["matrix"]["name"] for row in self.rows(out, "-m", "*seed=2*")}, {one})

    def test_a_name_that_no_row_has_is_mistyped(self):
        for args, message in ((("-m", "web-NotreDam"), "--matrix web-NotreDam: no matrix of these runs matches (did you mean 'web-NotreDame'?)"),
                              (("-m", "[rsh]"), "--matrix [rsh]: no matrix of these runs matches"),
                              (("-k", "rsch"), "--kernel rsch: no kernel of these runs matches (did you mean 'rsh'?)"),
                              (("-k", "rsh?alpha=7"), "--kernel rsh?alpha=7: no kernel of these runs matches")):  # fmt: skip
            self.assert_one_line(self.spmmbench("show", NOTRE_DAME, *args), 1, message)
        self.assertIn("cases of this run is asked for", self.show(NOTRE_DAME, "-m", "no_such*"))

    def test_a_status_that_no_case_has_is_named(self):
        self.assertRegex(self.show(self.recorded(), "--status", "wrong"),
                         r"\nnone of the \d+ cases of this run is wrong\n")

    def test_a_revision_with_changes_that_were_not_committed_says_so(self):
        recorded = read(NOTRE_DAME)
        recorded["context"]["git_revision"] = "0123456789abcdef-dirty"
        write(self.folder / "dirty.json", recorded)
        self.assertIn("revision 0123456789ab-dirty\n", self.show(self.folder / "dirty.json"))

    def test_a_reader_that_leaves_is_no_error(self):
        with subprocess.Popen([PROGRAM, "show", RECORDED], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as show:
            show.stdout.readline()
            show.stdout.close()
            self.assertEqual(show.stderr.read(), b"")

    def test_options_of_a_pattern_are_those_the_row_must_have(self):
        rows = read(NOTRE_DAME)
        row = next(r for r in rows["rows"] if r["status"] == "ok")
        rows["rows"] = [{**row, "kernel": "rsh?alpha=0.5&tau=4"}, {**row, "kernel": "rsh"}]
        path = self.folder / "options.json"
        write(path, rows)
        found = [r["kernel"] for r in self.rows(path, "-k", "rsh?tau=4")]
        self.assertEqual(found, ["rsh?alpha=0.5&tau=4"])
        self.assertEqual(len(self.rows(path, "-k", "rsh")), 2)

    def test_json_is_a_document_that_can_be_shown_again(self):
        out = self.recorded()
        document = json.loads(self.show(out, "--format", "json"))
        self.assertEqual(document, read(out))
        self.assertEqual(len(json.loads(self.show(out, out, "--format", "json"))), 2)

    def test_csv_has_the_rows_asked_for(self):
        out = self.recorded()
        rows = list(csv.DictReader(io.StringIO(self.show(out, "--format", "csv", "-n", "16"))))
        self.assertEqual([row["n"] for row in rows], ["16"] * 4)
        self.assertGreater(float(rows[0]["hot_median_us"]), 0)

    def test_markdown_is_a_table_with_the_winner_in_bold(self):
        text = self.show(NOTRE_DAME, "-m", "web-NotreDame", "--format", "markdown")
        lines = text.splitlines()
        self.assertTrue(lines[0].startswith("## "))
        bars = [line for line in lines if line.startswith("|")]
        self.assertEqual(len({line.count("|") for line in bars}), 1, "every row has all columns")
        self.assertRegex(bars[1], r"^\|---\|---\|---:\|")
        self.assertRegex(text, r"\| \*\*rsh\*\* \| \*\*fp16\*\* \|")
        self.assertIn("- skipped: ", text)

    def test_columns_and_order_are_as_asked(self):
        lines = self.show(NOTRE_DAME, "-m", "web-NotreDame", "--precision", "fp16", "--columns",
                          "kernel,cold,speedup_cublas", "--sort", "cold").splitlines()
        self.assertEqual(lines[3].split(), ["kernel", "cold", "us", "speedup_cublas"])
        times = [float(line.removeprefix("*").split()[-2]) for line in lines[4:] if line and
                 not line.startswith(("  skipped", "  answer", "  x best", "  pays at"))]
        self.assertEqual(times, sorted(times))
        self.assertGreater(len(times), 5)
        reverse = self.show(NOTRE_DAME, "-m", "web-NotreDame", "--precision", "fp16", "--columns",
                            "kernel,cold,speedup_cublas", "--sort", "cold:desc").splitlines()
        self.assertEqual(times, [float(line.split()[-2]) for line in reversed(reverse[4 : 4 + len(times)])])

    def test_calls_count_preparation_in_the_star_and_the_order(self):
        one = ("-m", "web-NotreDame", "--precision", "fp16")
        self.assertIn("\n* rsh ", self.show(NOTRE_DAME, *one))
        counted = self.show(NOTRE_DAME, *one, "--calls", "100")
        self.assertIn("preparation counted for 100 calls", counted)
        rows = [r for r in self.rows(NOTRE_DAME, *one, "--calls", "100") if r["status"] == "ok"]
        least = min(rows, key=lambda r: r["in_all_us"])["kernel"]
        self.assertNotEqual(least, "rsh")
        self.assertIn(f"\n* {least} ", counted)
        row = next(r for r in rows if r["kernel"] == "rsh")
        once = sum(ms for stage, ms in row["stages_ms"].items() if stage != "load")
        self.assertAlmostEqual(row["in_all_us"], 10 * once + row["hot"]["median_us"], places=6)
        self.assert_one_line(self.spmmbench("show", NOTRE_DAME, "--calls", "-1"), 1, "--calls")

    def test_the_answer_and_what_auto_picked_stand_below_the_rows(self):
        text = self.show(NOTRE_DAME, "-m", "web-NotreDame", "--precision", "fp16", "--why")
        answer = r"\n  answer \(fastest, preparation included\): 1 call: csr_merge, \d+ us in all .* calls: (\S+), [\d.]+ us a call, 0.82 of the bound"
        self.assertRegex(text, answer)
        fastest = re.search(answer, text)[1]
        auto = next(r for r in self.rows(NOTRE_DAME, "-m", "web-NotreDame") if r["kernel"] == "auto")
        self.assertIn(f"\n  auto in fp16 begins with csr_merge and, settled, picked {auto['pick']['kernel']}: ", text)
        document = json.loads(self.show(NOTRE_DAME, "-m", "web-NotreDame", "--format", "json"))
        (answer,) = document["answers"]
        kernels = [step["kernel"] for step in answer["steps"]]
        self.assertEqual((kernels[0], kernels[-1]), ("csr_merge", fastest))

    def test_a_filter_of_kernels_leaves_the_star_and_the_answer_to_all_rows_of_the_problem(self):
        one = ("-m", "web-NotreDame", "--precision", "fp16")
        some = (*one, "-k", "auto,csr_row_split")
        whole, part = self.show(NOTRE_DAME, *one), self.show(NOTRE_DAME, *some)
        self.assertIn("\n* rsh ", whole)
        self.assertIn("\n  auto ", part)
        for hidden in ("\n* ", "\n  rsh ", "skipped"):
            self.assertNotIn(hidden, part)
        answers = [re.search("  answer .*", text)[0] for text in (whole, part)]
        self.assertEqual(*answers)
        text = self.show(NOTRE_DAME, *some, "--format", "json")
        document = json.loads(text)
        self.assertEqual({row["kernel"] for row in document["rows"]}, {"auto", "csr_row_split"})
        kernels = {step["kernel"] for answer in document["answers"] for step in answer["steps"]}
        self.assertIn("auto", kernels)
        self.assertLessEqual(kernels, {"auto", "csr_row_split"}, "a document compares the rows that it has")
        copy = self.folder / "some.json"
        copy.write_text(text)
        self.assertEqual(self.show(copy, "--format", "json"), text)
        nothing = json.loads(self.show(NOTRE_DAME, *one, "-k", "no_such*", "--format", "json"))
        self.assertEqual((nothing["rows"], nothing["answers"]), ([], []))

    def test_csv_of_several_runs_says_which_run_a_row_is_of(self):
        one = ("-m", "web-NotreDame", "-k", "auto", "--format", "csv")
        header, row = self.show(NOTRE_DAME, *one).splitlines()
        both = self.show(NOTRE_DAME, NOTRE_DAME, *one).splitlines()
        self.assertEqual(both, [f"run,{header}", f"1,{row}", f"2,{row}"])

    def test_an_unknown_column_is_refused_with_a_suggestion(self):
        for flag in ("--columns", "--sort"):
            self.assert_one_line(self.spmmbench("show", NOTRE_DAME, flag, "hto"), 1, "did you mean 'hot'?")

    def test_a_journal_is_shown_with_its_last_row_of_each_case_and_a_cut_line_passed_over(self):
        document = read(self.recorded())
        journal = self.folder / "cut.json.journal"
        first = {**document["rows"][0], "status": "failed", "reason": "lost", "hot": None, "cold": None}
        lines = [document["context"], first, *document["rows"][:3]]
        journal.write_text("".join(map(journal_line, lines)) + '{"matrix": {"na')
        self.assertEqual([case_of(row) for row in self.rows(journal)],
                         [case_of(row) for row in document["rows"][:3]])
        self.assertEqual({row["status"] for row in self.rows(journal)}, {"ok"})
        self.assertIn("not complete, 3 cases so far", self.show(journal))
        document = self.folder / "cut.json"
        self.assert_one_line(self.spmmbench("show", document), 1,
                             f"{document}: no such file; {journal} has the rows of the run that has not ended")

    def test_a_journal_has_the_speed_ups_of_the_rows_so_far(self):
        document = read(self.recorded())
        row = next(row for row in document["rows"] if row["precision"] == "fp32")
        row["speedup"] = dict.fromkeys(row["speedup"])
        baseline = {**row, "kernel": "cusparse_csr_default", "baseline": True, "precision": "fp32"}
        journal = self.folder / "out.json.journal"
        journal.write_text("".join(map(journal_line, (document["context"], row, baseline))))
        self.assertEqual(self.rows(journal)[0]["speedup"]["cusparse_default_fp32"], 1)

    def test_what_is_no_run_is_refused_in_one_line(self):
        for name, content in (("page", "<html>"), ("list", "[]"), ("empty", ""), ("cut", '{"schema_ve'),
                              ("new", '{"schema_version": 99, "context": {}, "rows": []}')):
            path = self.folder / name
            path.write_text(content)
            self.assert_one_line(self.spmmbench("show", path), 1, f"{path}: ")
        self.assert_one_line(self.spmmbench("show", self.folder / "absent"), 1, "cannot be opened")

    def test_json_of_many_brackets_is_refused_by_every_reader(self):
        good, other, deep, out = self.recorded(), *(self.folder / f"{name}.json" for name in ("other", "deep", "merged"))
        self.run_cpu(SMALL, "-n", 8, "--json", other, "-q")
        brackets = "[" * 200_000 + "]" * 200_000
        for text in ('{"schema_version":1,"rows":[{"matrix":%s}]}', '{"schema_version":%s}', '{"calibration_version":%s}', "%s"):
            deep.write_text(text % brackets)
            for command in (("show", deep), ("merge", out, deep), ("compare", good, deep), ("run", SMALL, "--device", -1, "--json", deep, "--resume"),
                            ("compare", good, other, "--calibration", deep)):
                with self.subTest(text=text, command=command):
                    self.assert_one_line(self.spmmbench(*command), 1, f"{deep}: nested deeper than 64 levels")

    def test_values_that_no_run_writes_are_refused_with_file_and_field(self):
        good, bad = read(self.recorded()), self.folder / "bad.json"
        for change, what in (
            (lambda d: d["rows"][0]["hot"].update(median_us=-1),
             "rows[0]: 'hot.median_us': expected at least 0, got -1"),
            (lambda d: d["rows"][0].update(n=2**63), "rows[0]: 'n': expected an integer from 0 to "),
            (lambda d: d["rows"][0].update(n=-5), "rows[0]: 'n': expected an integer from 0 to "),
            (lambda d: d["rows"][-1].pop("n"), "rows[7]: expected the field 'n'"),
            (lambda d: d.update(context=5), "context: expected an object, got 5"),
            (lambda d: d["context"].update(calls=-3), "context: 'calls': expected an integer from 0 to "),
            (lambda d: d["rows"][0].update(precision="fp8"), "rows[0]: 'precision': expected one of "),
            (lambda d: d["rows"][0].update(kernel=""), "rows[0]: 'kernel': expected text, not empty"),
            (lambda d: d["rows"][0].update(kernel="rsh?tau"), "rsh?tau"),
            (lambda d: d.update(rows=[1, None, "x"]), "'rows[0]': expected an object, got 1"),
            (lambda d: d["rows"].append(7), "'rows[8]': expected an object, got 7"),
            (lambda d: d.update(complete="yes"), "'complete': expected true or false, got \"yes\""),
        ):
            document = copy.deepcopy(good)
            change(document)
            write(bad, document)
            result = self.spmmbench("show", bad)
            self.assert_one_line(result, 1, f"{bad}: ")
            self.assertIn(what, result.stderr)
            if what != "rsh?tau":
                out = self.folder / "merged.json"
                self.assert_one_line(self.spmmbench("merge", out, bad), 1, f"{bad}: {what}")
                self.assertFalse(out.exists())

    def test_what_the_scripts_refuse_is_refused_in_their_words(self):
        path = self.folder / "damaged.json"
        for place, value, words in DAMAGES:
            with self.subTest(place):
                write(path, damaged_at(place, value))
                self.assert_one_line(self.spmmbench("show", path), 1, words)
        write(path, damaged_at("rows.0.metrics.share", 2.0))
        self.show(path)

    def test_texts_of_a_document_reach_the_terminal_without_control_characters(self):
        document, path = read(self.recorded()), self.folder / "raw.json"
        for row in document["rows"]:
            row["matrix"]["name"] = "m\x1b[2J\nx"
        document["rows"][0].update(status="failed", reason="r\x1b]0;title\x07", hot=None, cold=None)
        write(path, document)
        for style in ("table", "markdown"):
            shown = self.show(path, "--format", style)
            self.assertNotIn("\x1b", shown)
            self.assertNotIn("\x07", shown)
            self.assertIn(r"m\x1b[2J\x0ax: ", shown)
            self.assertIn(r"failed: r\x1b]0;title\x07", shown)

    def test_a_run_of_before_a_field_existed_is_read_with_what_it_has(self):
        document = read(self.recorded())
        del document["context"]["tags"]
        old = self.folder / "old.json"
        write(old, document)
        self.assertEqual(len(self.rows(old)), 8)

    def test_tags_are_kept_and_shown(self):
        out = self.recorded("--tag", "driver=580", "--tag", "note=after the update, warm")
        tags = {"driver": "580", "note": "after the update, warm"}
        self.assertEqual(read(out)["context"]["tags"], tags)
        self.assertIn("driver=580, note=after the update, warm", self.show(out).splitlines()[0])
        path = self.folder / "\x1b[31m.json"
        path.write_bytes(self.recorded("--tag", "note=\x1b[2J").read_bytes())
        for style in ("table", "markdown"):
            shown = self.show(path, "--format", style)
            self.assertIn(r"\x1b[31m.json: ", shown)
            self.assertIn(r"note=\x1b[2J", shown)
            self.assertNotIn("\x1b", shown)
        result = self.run_cpu(SMALL, "--tag", "driver")
        self.assertEqual(result.returncode, 1)
        self.assertIn("--tag driver: expected KEY=VALUE", result.stderr)


if __name__ == "__main__":
    main()
