#!/usr/bin/env python3
"""What scripts/report.py writes, read as text; test_report_page.py opens it in a browser."""

import copy
import html.parser
import json
import os
import pathlib
import re
import stat
import sys
import unittest

from report_case import (
    DAMAGED_ANSWERS,
    DAMAGES,
    HOSTILE,
    SOURCE,
    ReportCase,
    damaged_at,
    document,
    main,
    many_rows,
    picked,
    row,
)

sys.path.insert(0, str(SOURCE / "scripts"))
from result_data import SCHEMA, STATUSES, InputError, load_document, readable
from result_series import Results, answers, structural_group

try:
    from report_rows import script_data
    from report_tables import cards, label_runs
except ImportError:  # no markupsafe: the tests that need it are skipped
    script_data = cards = label_runs = None


class Page(html.parser.HTMLParser):
    """Counts tags, collects addresses, ids and the cells of each table."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.addresses, self.tables, self.ids, self.in_cell = [], [], [], [], False
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [v for k, v in attributes if k in ("src", "href", "xlink:href")]
        self.ids += [v for k, v in attributes if k == "id"]
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.in_cell = True
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.in_cell = False

    def handle_data(self, data):
        if self.in_cell:
            self.tables[-1][-1][-1] += data


class AnswerTest(unittest.TestCase):
    def test_the_answers_are_those_of_the_document(self):
        rows = [
            row("m", "cusparse_csr_default", 20.0, precision="fp32"),
            row("m", "cusparse_csr_default", 18.0),
            row("m", "rsh", 8.0),
            row("alone", "rsh", 8.0),
        ]
        made = document(rows)
        made["answers"][0]["steps"] = [{"from_calls": 77, "kernel": "rsh", "reorder": "none"}]
        found = answers(Results([made]))
        self.assertEqual(len(found), 1, "where there is a choice")
        (steps,) = found.values()
        self.assertEqual([(calls, r["kernel"]) for calls, r in steps], [(77, "rsh")])
        made["answers"] = None
        self.assertEqual(answers(Results([made])), {})

    def test_a_matrix_read_from_two_files_is_one_and_another_of_its_name_is_another(self):
        rows = []
        for source, sha256, fastest in (("a/m.mtx", "1", 8.0), ("b/m.mtx", "2", 8.0), ("a/m.csr", "1", 7.0)):
            for kernel, us in (("cusparse_csr_default", 18.0), ("rsh", fastest)):
                rows.append(row("m", kernel, us, break_even_against=None))
                rows[-1]["matrix"] |= {"source": source, "sha256": sha256}
        made = {"name": "r.json", **document(rows)}
        label_runs([made])
        results = Results([made])
        self.assertEqual(len(answers(results)), 2)
        self.assertEqual(len(results.winners()), 2)
        self.assertEqual(cards(results, None)[0]["value"], "2")
        shown = json.loads(script_data(results, answers(results)))
        self.assertEqual(len(shown["matrices"]), 2)
        self.assertEqual(sum(line[shown["fields"].index("best")] for line in shown["rows"]), 2)
        again = Results([made, copy.deepcopy(made)])
        self.assertEqual(cards(again, None)[0]["value"], "2", "another run of the same")

    def test_a_dense_product_is_no_headline_over_graphs(self):
        nothing = {"cusparse_best": None, "eigen_fp32": None, "eigen": None}
        for share, shown in ((0.001, False), (0.1, True)):
            rows = [row("m", name, us, density=share, speedup={**nothing, "cusparse_default_fp32": 18 / us, "cublas": 40 / us})
                    for name, us in (("cublas_dense", 40.0), ("rsh", 9.0))]  # fmt: skip
            made = {"name": "r.json", **document(rows)}
            label_runs([made])
            headlines = [card["what"] for card in cards(Results([made]), "cusparse_default_fp32")]
            self.assertEqual(any("over cuBLAS" in what for what in headlines), shown, headlines)
            self.assertTrue(any("over cuSPARSE default fp32" in what for what in headlines))

    def test_an_infinite_error_is_infinite_and_no_number_of_calls(self):
        rows = [row("m", kernel, 8.0, break_even_calls="never", break_even_against="rsh", **changes)
                for kernel, changes in (("rsh", {}), ("async_wcsr", {"status": "wrong"}))]  # fmt: skip
        rows[1]["verify"]["error_over_bound"] = "inf"
        made = {"name": "r.json", **document(rows)}
        label_runs([made])
        shown = json.loads(script_data(Results([made]), {}))
        wrong = dict(zip(shown["fields"], shown["rows"][1]))
        self.assertEqual((wrong["error"], wrong["pays"]), ("∞", "never"))

    def test_a_group_follows_from_the_generator_or_the_structure(self):
        made = row("m", "rsh", 8.0, density=0.5)
        self.assertIn("weights-like", structural_group(made))
        made["matrix"] |= {"nnz": 1000, "mean_row": 3.0}
        self.assertIn("short rows", structural_group(made))
        made["matrix"]["cv_row"] = 5.0
        self.assertIn("skewed", structural_group(made))
        made["matrix"]["source"] = "gen:rmat?scale=10"
        self.assertEqual(structural_group(made), "generated: rmat")

    def test_text_of_any_bytes_becomes_readable(self):
        self.assertEqual(readable("a_$<é"), "a_$<é")
        self.assertEqual(readable("a\udcff\x1b[1m\ud800"), "a\\xff\\x1b[1m\\ud800")


class ReportTest(ReportCase):
    page = None  # of many_rows(), whose figures take a second to draw

    def page_of_many_rows(self):
        if ReportTest.page is None:
            ReportTest.page = self.report(self.write(many_rows())).read_bytes()
        return ReportTest.page

    def test_the_page_stands_alone_and_escapes_what_it_shows(self):
        source = self.page_of_many_rows().decode()
        page = Page(source)
        self.assertNotIn("link", page.tags)
        self.assertNotIn("img", page.tags)
        self.assertEqual(page.tags.count("figure"), 8)
        for address in page.addresses:
            self.assertTrue(address.startswith("#"), address[:60])
        without_names = re.sub(r'xmlns(:\w+)?="[^"]*"|"http://www.w3.org/2000/svg"', "", source)
        self.assertFalse("http" in without_names.split("<body>")[1])
        self.assert_holds(source, "&lt;script&gt;")
        self.assertFalse("<script>alert" in source)
        self.assertEqual(len(page.ids), len(set(page.ids)), "an id is used twice")

    def test_the_rates_of_the_device_are_shown_where_they_were_measured(self):
        path = self.write(many_rows())
        self.assertFalse("auto predicts with" in self.text_of_report(path))
        made = json.loads(path.read_text())
        made["context"] |= {"gather_gb_per_s": None, "dense_tflops": 764.2}
        path.write_text(json.dumps(made))
        self.assert_holds(self.text_of_report(path), "dense 764 TFLOP/s")

    def test_a_run_without_answers_says_what_adds_them(self):
        path = self.write(many_rows())
        made = json.loads(path.read_text())
        del made["answers"]
        path.write_text(json.dumps(made))
        source = self.text_of_report(path)
        self.assert_holds(source, f"spmmbench show {path.name} --format json")
        self.assertNotIn("made before the program", self.text_of_report(self.write(many_rows())))

    def test_answers_of_rows_that_a_filter_left_out_are_left_out(self):
        rows = [row("m", kernel, us) for kernel, us in (("rsh", 8.0), ("esmm", 9.0), ("gather_mma", 9.5))]
        rows += [row("k", kernel, us) for kernel, us in (("rsh", 8.0), ("esmm", 7.0), ("gather_mma", 9.5))]
        made = document(rows)
        made["rows"] = [kept for kept in rows if kept["kernel"] != "rsh"]
        (steps,) = answers(Results([made])).values()
        self.assertEqual([(calls, kept["kernel"]) for calls, kept in steps], [(1, "esmm")])
        made["rows"] = [kept for kept in rows if kept["kernel"] == "gather_mma"]
        self.assertEqual(answers(Results([made])), {})
        path = self.folder / "filtered.json"
        path.write_text(json.dumps(made))
        source = self.text_of_report(path)
        self.assert_holds(source, "Left out: 2 of 2 answers of filtered.json")
        self.assertFalse("Left out: " in self.text_of_report(self.write(rows)))

    def test_answers_that_fit_no_verified_row_are_refused(self):
        path = self.write(many_rows())
        made = json.loads(path.read_text())
        for change, reason in (
            (lambda d: [r.update(status="wrong") for r in d["rows"]], "has no verified row there"),
            (lambda d: d["answers"][0].update(steps=[]), "steps': expected a list, not empty"),
            (lambda d: d.update(answers={}), "'answers': expected a list"),
        ):
            bad = json.loads(json.dumps(made))
            change(bad)
            path.write_text(json.dumps(bad))
            result = self.run_script("report.py", path, "--out", self.folder / "bad.html")
            self.assert_one_line(result, reason)

    def test_why_auto_picked_what_it_picked_stands_beside_the_answer(self):
        rows = [row("m", "rsh", 8.0), row("m", "auto", 9.0)]
        answers_table = Page(self.text_of_report(self.write(rows))).tables[1]
        self.assertIn("auto picked rsh: <short> rows", answers_table[1][1])

    def test_the_choice_that_is_explained_is_that_of_the_step_or_of_plain_auto(self):
        for us, explained, other in (
            (9.5, "auto picked rsh: <short> rows", "esmm"),
            (7.0, "auto?calls=1000 picked esmm: 1000 calls", "<short> rows"),
        ):
            rows = [row("m", "rsh", 8.0), row("m", "auto", 9.0), row("m", "auto?calls=1000", us, pick=picked("esmm", "1000 calls"))]
            answer = Page(self.text_of_report(self.write(rows))).tables[1][1][1]
            self.assertIn(explained, answer)
            self.assertNotIn(other, answer)

    def test_the_means_of_two_runs_stay_apart(self):
        paths = [self.write([row("m", "cusparse_csr_default", 20.0), row("m", "rsh", us)], f"{name}.json")
                 for name, us in (("fast", 4.0), ("slow", 8.0), ("third", 5.0))]  # fmt: skip
        source = self.text_of_report(*paths[:2])
        kernels, *_ = Page(source).tables
        shown = [dict(zip(kernels[0], cells)) for cells in kernels[1:] if cells[0] == "rsh"]
        means = {line["run"]: (line["fastest in"], line["× best cuSPARSE"]) for line in shown}
        self.assertEqual(means, {"fast": ("1", "4.00 (1)"), "slow": ("1", "2.00 (1)")})
        for value, run in (("5.00", "fast"), ("2.50", "slow")):
            what = f"rsh over cuSPARSE default fp32, geometric mean of 1 in {run}"
            self.assert_holds(source, f"<b>{value}×</b> <span>{what}</span>")
        self.assert_holds(source, "The figures put the cases of all runs together")
        self.assertFalse("geometric mean of 1 in" in self.text_of_report(*paths), "too many to show")

    def test_a_run_without_cusparse_in_fp32_is_compared_with_what_it_has(self):
        rows = [row("m", name, us, speedup={"cusparse_default_fp32": None, "cusparse_best": 18 / us, "cublas": 40 / us})
                for name, us in (("cusparse_csr_alg2", 18.0), ("rsh", 9.0))]  # fmt: skip
        source = self.report(self.write(rows)).read_text(encoding="utf-8")
        self.assert_holds(source, "The speed-ups are over the fastest cuSPARSE of the same precision.")
        self.assert_holds(source, "<b>2.00×</b> <span>rsh over best cuSPARSE, geometric mean of 1</span>")
        self.assertIn("× best cuSPARSE", Page(source).tables[0][0])
        self.assertFalse("no speed-up over" in source, "figures that could not be drawn say so")

    def test_a_run_without_a_gpu_has_speed_ups_over_eigen(self):
        nothing = {"cusparse_default_fp32": None, "cusparse_best": None, "cublas": None}
        rows = [row("m", name, us, baseline=name == "eigen_csr",
                    speedup={**nothing, "eigen_fp32": 60 / us, "eigen": 50 / us})
                for name, us in (("eigen_csr", 50.0), ("cpu_csr", 20.0))]  # fmt: skip
        source = self.report(self.write(rows)).read_text(encoding="utf-8")
        kernels, *_ = Page(source).tables
        self.assertIn("× Eigen fp32", kernels[0])
        line = next(cells for cells in kernels if cells[0] == "cpu_csr")
        self.assertIn("3.00 (1)", line)
        self.assertFalse("no speed-up over" in source, "figures that could not be drawn say so")

    def test_the_tables_hold_the_right_numbers(self):
        source = self.text_of_report(self.write(many_rows()))
        kernels, answers_table, *_, troubles = Page(source).tables
        line = next(cells for cells in kernels if cells[0] == "async_wcsr")
        self.assertEqual(line[1:6], ["8", "1", "0", "0", "0"])
        self.assertEqual(line[6], "1.40 (8)")  # (20/9 * 20/13 * 20/17 * 20/21)^(1/4)
        best = next(cells for cells in kernels if cells[0].startswith("rsh_spmm"))
        self.assertEqual(best[:2], ["rsh_spmm?window=16 [rsh]", "8"])
        self.assertEqual(best[5], "8")  # the wrong row is faster and wins nothing
        self.assertEqual(len(answers_table), 1 + 8)
        # Preparation: 0.1 ms of cuSPARSE, 4 ms of the others; 18 us against 8 us per call.
        steps = " ".join(answers_table[1][1].split())
        self.assertEqual(
            steps,
            "1 call: cusparse_csr_default 118 µs in all "
            "from 390 calls: rsh_spmm?window=16 [rsh] 8.00 µs each, 4.00 ms before, 0.25 of the bound",
        )
        self.assertEqual(troubles[1][:4], ["async_wcsr", "wrong", "1", HOSTILE])
        self.assertEqual(
            troubles[2][:4], ["async_bcsr", "skipped", "8", "needs compute capability 9.0"]
        )

    def test_a_document_without_a_single_measurement_still_makes_a_page(self):
        source = self.report(self.write([row("m", "async_bcsr", None)])).read_text(encoding="utf-8")
        self.assert_holds(source, "Not shown for lack of data")
        self.report(self.write([]))

    def test_the_same_runs_make_the_same_page(self):
        self.page_of_many_rows()
        self.assertEqual(self.report(self.write(many_rows())).read_bytes(), self.page_of_many_rows())

    def test_groups_are_read_from_a_file(self):
        groups = self.folder / "groups.csv"
        groups.write_text("name,kind\nm0,<web>\ndlmc/m1,pruned\n")
        path = self.write(many_rows())
        source = self.text_of_report(path, options=["--groups", groups])
        self.assert_holds(source, "&lt;web&gt;")
        self.assert_holds(source, "pruned")
        groups.write_text("a,b\n1,2\n")
        out = self.folder / "none.html"
        result = self.run_script("report.py", path, "--groups", groups, "--out", out)
        self.assert_one_line(result, "expected CSV with the columns name and group")
        self.assertFalse(out.exists())

    def test_fields_that_an_older_run_lacks_are_left_out(self):
        made = document(many_rows())
        for line in made["rows"]:
            for field in ("pick", "calls_us", "a_memory"):
                del line[field]
            for field in ("eigen_fp32", "eigen"):
                line["speedup"].pop(field, None)
        del made["answers"]
        path = self.folder / "old.json"
        path.write_text(json.dumps(made))
        self.assert_holds(self.report(path).read_text(encoding="utf-8"), "old.json")

    def test_statuses_are_those_of_the_schema(self):
        self.assertEqual(set(STATUSES), set(SCHEMA.part("row")["properties"]["status"]["enum"]))

    def test_a_damaged_file_is_one_line_and_leaves_no_page(self):
        whole = json.dumps(document(many_rows()))
        damaged = {
            "truncated": whole[: len(whole) // 2],
            "binary": "\x00\x01\x02",
            "deep": "[" * 100_000,
            "deep field": whole.replace('"rows":', f'"unknown": {"[" * 700}{"]" * 700}, "rows":', 1),
            "list": "[]",
            "empty": "{}",
            "rows": json.dumps({"schema_version": 1, "context": {}, "rows": 7}),
            "row": json.dumps({"schema_version": 1, "context": {}, "rows": [{"kernel": "x"}]}),
            "median": whole.replace('"median_us": 9.0', '"median_us": "fast"', 1),
            "no time": whole.replace('"median_us": 9.0', '"median_us": 0', 1),
            "status": whole.replace('"status": "ok"', '"status": "fine"', 1),
            "size": whole.replace('"rows": 10000', '"rows": null', 1),
        }
        for name, content in damaged.items():
            path = self.folder / f"{name}.json"
            path.write_text(content)
            for script in ("report.py", "plot.py"):
                with self.subTest(name, script=script):
                    out = self.folder / "out"
                    result = self.run_script(script, path, "--out", out)
                    self.assert_one_line(result, f"{name}.json")
                    self.assertFalse(out.exists())
        for script in ("report.py", "plot.py"):
            self.assert_one_line(self.start_script(script, self.folder / "absent.json"), "absent.json")

    def test_a_field_of_another_type_is_named_in_one_line(self):
        path = self.folder / "damaged.json"
        for place, value, what in DAMAGES + DAMAGED_ANSWERS:
            with self.subTest(place):
                path.write_text(json.dumps(damaged_at(place, value)))
                with self.assertRaises(InputError) as refused:
                    load_document(path)
                self.assertIn(what, str(refused.exception))
        self.assert_one_line(self.run_script("report.py", path, "--out", self.folder / "x.html"), "reorder': expected text")

    def test_the_largest_seed_of_the_program_is_read(self):
        path = self.folder / "seed.json"
        path.write_text(json.dumps(damaged_at("context.seed", 2**64 - 1)))
        self.assertEqual(load_document(path)["context"]["seed"], 2**64 - 1)

    def test_another_schema_version_is_refused_with_the_one_that_is_read(self):
        for version in (0, SCHEMA.version + 1, "1", True, []):
            path = self.folder / "other.json"
            path.write_text(json.dumps({"schema_version": version, "context": {}, "rows": []}))
            result = self.run_script("report.py", path, "--out", self.folder / "x.html")
            self.assert_one_line(result, f"schema version {version!r}; this script reads version")

    def test_a_failure_keeps_the_page_that_was_there(self):
        out = self.folder / "report.html"
        out.write_text("before")
        broken = self.folder / "broken.json"
        broken.write_text("{")
        self.assertEqual(self.run_script("report.py", broken, "--out", out).returncode, 1)
        self.assertEqual(out.read_text(), "before")
        self.assertEqual(
            sorted(p.name for p in self.folder.iterdir()), ["broken.json", "report.html"]
        )

    def test_an_output_that_cannot_be_written_is_one_line(self):
        self.enterContext(self.without_figures())
        path = self.write(many_rows()[:2])
        (self.folder / "file").write_text("")
        result = self.run_script("report.py", path, "--out", self.folder / "file" / "report.html")
        self.assert_one_line(result, "report.html" if os.name == "nt" else "file")
        for out, name in (("/dev/full", "/dev/full: "), ("/proc/none", "/proc/none: ")):
            self.assert_one_line(self.run_script("report.py", path, "--out", out), name)

    def test_a_linked_page_is_replaced_at_its_target_with_its_mode(self):
        target = self.folder / "target.html"
        target.write_text("before")
        target.chmod(0o640)
        (self.folder / "report.html").symlink_to(target)
        self.text_of_report(self.write(many_rows()[:2]))
        self.assertTrue((self.folder / "report.html").is_symlink())
        self.assert_holds(target.read_text(encoding="utf-8"), "<!doctype html>")
        self.assertEqual(stat.S_IMODE(target.stat().st_mode), 0o640)

    def test_names_of_any_bytes_are_shown(self):
        rows = [
            row("_a$b^{<\ud800-\udcff中", kernel, us)
            for kernel, us in (("rsh", 8.0), ("cusparse_csr_default", 18.0))
        ]
        path = pathlib.Path(os.fsdecode(bytes(self.folder) + b"/r\xff.json"))
        path.write_text(json.dumps(document(rows)))
        source = self.report(path).read_text(encoding="utf-8")
        self.assert_holds(source, "_a$b^{&lt;\\ud800-\\xff中")
        self.assert_holds(source, "r\\xff")
        result = self.run_script(
            "plot.py", path, "--out", self.folder / "figures", "--format", "svg"
        )
        self.assertEqual(
            (result.returncode, result.stderr.count("Traceback")), (0, 0), result.stderr
        )


if __name__ == "__main__":
    main()
