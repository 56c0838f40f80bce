#!/usr/bin/env python3
"""The page of scripts/report.py in a headless Chromium: sorted, filtered, pointed at, printed."""

import contextlib
import itertools
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import browser
from report_case import SOURCE, ReportCase, main, many_rows, picked, row

WIDTHS = (360, 800, 1200, 1920)
CELL = "document.querySelector('#row-table tbody tr:nth-child({}) {}').textContent"


def column(table, place):
    return f"[...document.querySelectorAll('#{table} tbody tr')].map(r => r.cells[{place}].textContent)"


class PageTest(ReportCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.pages = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.pages.cleanup)

    def setUp(self):
        super().setUp()
        self.browser.wish("light")
        self.browser.size(1200)

    def open(self, *paths, figures=False):
        """The page of these runs, with its figures where asked for, else that of the rows that most tests share, with them."""
        if paths:
            with contextlib.nullcontext() if figures else self.without_figures():
                page = self.report(*paths)
        else:
            page = pathlib.Path(self.pages.name) / "page.html"
            if not page.exists():
                page.write_bytes(self.report(self.write(many_rows())).read_bytes())
        self.browser.open(page)
        self.addCleanup(lambda: self.assertEqual(self.browser.errors, []))
        return self.browser

    def wish(self, scheme):
        self.browser.wish(scheme)
        self.browser.wait(f"document.documentElement.dataset.theme === '{scheme}'")

    def place(self, name, table="row-table"):
        heads = self.browser.run(
            f"[...document.querySelectorAll('#{table} thead th')].map(h => h.textContent)"
        )
        return heads.index(name)

    def head(self, name, table="row-table"):
        return f"#{table} thead th:nth-child({self.place(name, table) + 1}) button"

    def test_the_page_asks_for_nothing_but_itself(self):
        page = self.open()
        self.assertEqual(len(page.requests), 1, page.requests)

    def test_a_heading_sorts_up_and_down_and_says_so(self):
        page = self.open()
        hot, kernel = self.place("hot, µs"), self.place("kernel")
        page.point(self.head("hot, µs"), click=True)
        values = [float(v) for v in page.run(column("row-table", hot)) if v != "–"]
        self.assertEqual(values, sorted(values, reverse=True))
        self.assertEqual(page.run(column("row-table", hot))[-1], "–")  # missing ones last
        state = f"document.querySelector('#row-table thead th:nth-child({hot + 1})').getAttribute('aria-sort')"
        self.assertEqual(page.run(state), "descending")
        page.point(self.head("hot, µs"), click=True)
        values = [float(v) for v in page.run(column("row-table", hot)) if v != "–"]
        self.assertEqual(values, sorted(values))
        self.assertEqual(page.run(state), "ascending")
        self.assertEqual(page.run(column("row-table", hot))[-1], "–")
        page.point(self.head("kernel"), click=True)
        names = page.run(column("row-table", kernel))
        self.assertEqual(names, sorted(names))
        self.assertEqual(page.run(state), "none")

    def test_the_answers_sort_by_what_is_shown(self):
        page = self.open()
        name = "× cuSPARSE default fp32"
        page.point(self.head(name, "answers"), click=True)
        values = list(map(float, page.run(column("answers", self.place(name, "answers")))))
        self.assertEqual(values, sorted(values, reverse=True))

    def test_the_keyboard_sorts_and_opens_the_details_of_a_row(self):
        page = self.open()
        page.run(f"document.querySelector({self.head('N')!r}).focus()")
        page.key("Enter")
        self.assertEqual(page.run(CELL.format(1, "td")), "128")
        page.key("Enter")
        self.assertEqual(page.run(CELL.format(1, "td")), "64")
        page.run("document.querySelector('#row-table .open').focus({focusVisible: true})")
        self.assertFalse(page.run("document.querySelector('#tip').hidden"))
        page.key("Enter")
        self.assertTrue(page.run("document.querySelector('dialog').open"))
        self.assertIn("spmmbench run", page.run("document.querySelector('dialog').textContent"))
        page.key("Escape")
        self.assertFalse(page.run("document.querySelector('dialog').open"))
        self.assertEqual(page.run("document.activeElement.className"), "open")

    def test_filters_by_name_kernel_precision_n_group_and_status_combine(self):
        rows = many_rows() + [
            row("other", "rsh", 7.0, precision="tf32"),
            row("other", "auto", 9.0, density=0.5),
        ]
        page = self.open(self.write(rows))
        everything = len(rows)

        def shown():
            return page.run(
                "new Promise(done => setTimeout(() => done(byId('count').textContent), 150))"
            )

        def tick(facet, value):
            page.run(
                f"document.querySelector('[data-facet={facet}] input[value={json.dumps(value)}]').click()"
            )

        self.assertTrue(shown().startswith(f"{everything} of {everything} rows"))
        for facet, value, expected in (
            ("kernel", "async_wcsr", 9),
            ("n", "64", 4),
            ("status", "ok", 4),
        ):
            tick(facet, value)
            self.assertTrue(shown().startswith(f"{expected} of"), f"{facet}: {shown()}")
        self.assertEqual(
            page.run("document.querySelector('[data-facet=kernel] .chosen').textContent"),
            ": async_wcsr",
        )
        page.run("document.querySelector('#find').focus()")
        page.type("M3")
        self.assertTrue(shown().startswith("1 of"), shown())
        self.assertEqual(page.run(column("row-table", 0)), ["m3"])
        self.assertEqual(
            page.run(
                "[...document.querySelectorAll('#answers tbody tr')].filter(r => !r.hidden).length"
            ),
            1,
        )
        page.point("#filters button[type=reset]", click=True)
        self.assertTrue(shown().startswith(f"{everything} of"))
        tick("precision", "tf32")
        self.assertTrue(shown().startswith("1 of"))
        tick("precision", "tf32")
        tick("group", "weights-like (over 2% nonzeros)")
        self.assertGreater(int(shown().split()[0]), 0)
        self.assertLess(int(shown().split()[0]), everything)

    def test_pointing_at_a_row_shows_its_samples_or_why_it_was_skipped_or_picked(self):
        rows = [
            row("m", "auto", 8.0),
            row("m", "async_bcsr", None),
            row("m", "cusparse_csr_default", 18.0),
        ]
        page = self.open(self.write(rows))
        tip = "document.querySelector('#tip')"
        page.point("#row-table tbody tr:nth-child(1) td:nth-child(4)")
        self.assertFalse(page.run(f"{tip}.hidden"))
        text = page.run(f"{tip}.textContent")
        for part in ("picked", "rsh", "<short> rows", "3 samples", "quartiles"):
            self.assertIn(part, text)
        self.assertEqual(page.run(f"{tip}.querySelectorAll('circle').length"), 6)  # 3 hot, 3 cold
        box = page.run(
            f"(r => [r.left, r.top, innerWidth - r.right, innerHeight - r.bottom])({tip}.getBoundingClientRect())"
        )
        self.assertGreaterEqual(min(box), 0, "the tooltip leaves the window")
        page.point("#row-table tbody tr:nth-child(2) td:nth-child(4)")
        self.assertIn("needs compute capability 9.0", page.run(f"{tip}.textContent"))
        page.point("h1")
        self.assertTrue(page.run(f"{tip}.hidden"))

    def test_the_details_of_a_row_compare_kernels_of_its_case_alone(self):
        rows = [row("m", "rsh", 8.0), row("m", "esmm", 9.0), row("m", "gather_mma", 7.0, c_type="fp16")]
        page = self.open(self.write(rows))
        page.run("document.querySelector('#row-table .open').click()")
        text = page.run("document.querySelector('dialog').textContent")
        self.assertIn("Speed of each kernel of this case (fp16, C in fp32), hot", text)
        names = page.run("[...document.querySelectorAll('dialog .bars span')].map(s => s.textContent)")
        self.assertEqual(names[::2], ["rsh -> fp32", "esmm -> fp32"])

    def test_two_runs_are_compared_case_by_case(self):
        before, after = many_rows(), many_rows()
        after[3] = row("m0", "rsh_spmm?window=16", 12.0, 64, 0.01, reorder="rsh")
        after[1] = row(
            "m0", "cublas_dense", 40.0, 64, 0.01, status="wrong", reason="off", hot=None, cold=None
        )
        page = self.open(self.write(before, "before.json"), self.write(after, "after.json"))
        text = page.run("document.querySelector('#compared').textContent")
        self.assertIn("41 cases in both runs, 32 timed in both. ", text)
        self.assertIn("(geometric mean): 0 less, 1 more, 31 the same. Another status: 1 ok → wrong.", text)
        self.assertNotIn("are not in", text)
        changes = page.run(column("compare-table", 8))
        self.assertEqual(changes[:2], ["ok → wrong", "▲ more"])  # the largest change first
        self.assertEqual(page.run(column("compare-table", 5))[1], "1.500")
        page.run("byId('run-a').value = 1; byId('run-a').dispatchEvent(new Event('change'))")
        self.assertIn("0 less, 0 more", page.run("document.querySelector('#compared').textContent"))

    def test_cases_that_are_in_one_run_only_are_counted(self):
        before, after = many_rows(), many_rows()
        del before[0], after[2:4]
        page = self.open(self.write(before, "before.json"), self.write(after, "after.json"))
        text = page.run("document.querySelector('#compared').textContent")
        self.assertIn("38 cases in both runs", text)
        self.assertTrue(text.endswith(" 2 cases of A not in B. 1 case of B not in A."), text)

    def test_runs_without_a_case_in_common_say_so(self):
        page = self.open(
            self.write([row("m", "rsh", 8.0)], "a.json"),
            self.write([row("x", "rsh", 8.0)], "b.json"),
        )
        self.assertEqual(
            page.run("document.querySelector('#compared').textContent"), "No case is in both runs."
        )

    def test_nothing_overflows_at_any_width(self):
        rows = many_rows() + [
            row("a" * 120, "k?" + "x" * 150, 7.0),
            row("a" * 120, "cusparse_csr_default", 9.0),
        ]
        page = self.open(self.write(rows), figures=True)
        for width in WIDTHS:
            page.size(width)
            self.assertLessEqual(page.run("document.documentElement.scrollWidth"), width)
            wide = page.run(
                "[...document.body.querySelectorAll('*')].filter(e => !e.closest('.scroll, .plot, .hidden, .skip, .facet, dialog')"
                " && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))"
            )
            self.assertEqual(wide, [], width)

    def test_answers_and_kernels_fit_without_scrolling_sideways(self):
        pick = picked("async_wcsr?order=search", "23 nonzeros per row, predicted 12.5 us")
        page = self.open(self.write(many_rows() + [row("m0", "auto", 5.0, pick=pick)]))
        for width in WIDTHS:
            page.size(width)
            for table in ("answers", "kernel-table", "trouble-table"):
                sizes = page.run(
                    f"(s => [s.scrollWidth, s.clientWidth])(document.querySelector('#{table}').parentElement)"
                )
                self.assertLessEqual(sizes[0], sizes[1], f"{table} at {width}")

    def test_dark_colours_follow_the_system_and_the_button(self):
        page = self.open()
        paper = "getComputedStyle(document.body).backgroundColor"
        ink = "getComputedStyle(document.querySelector('#f0-figure_1 [id$=text_1] g')).fill"
        self.assertEqual(page.run(paper), "rgb(255, 255, 255)")
        light = page.run(ink)
        self.wish("dark")
        self.assertEqual(page.run(paper), "rgb(20, 24, 29)")
        self.assertNotEqual(page.run(ink), light, "the figures keep the light colours")
        self.assertEqual(
            page.run("document.querySelector('#theme').getAttribute('aria-pressed')"), "true"
        )
        page.point("#theme", click=True)
        self.assertEqual(page.run(paper), "rgb(255, 255, 255)")

    def test_text_has_contrast_in_both_colours(self):
        page = self.open()
        script = (SOURCE / "tests" / "cli" / "contrast.js").read_text()
        for scheme in ("light", "dark"):
            self.wish(scheme)
            self.assertEqual(page.run(script), [], scheme)

    @unittest.skipIf(
        shutil.which("pdftotext") is None, "no pdftotext (on Debian: apt-get install poppler-utils)"
    )
    def test_print_holds_every_column_and_row_and_repeats_the_headings(self):
        rows = [
            row(f"m{i}", kernel, us)
            for i in range(60)
            for kernel, us in (("auto", 8.0), ("cusparse_csr_default", 18.0))
        ]
        rows += [row(f"m{i}", "async_bcsr", None) for i in range(60)]
        page = self.open(self.write(rows))
        self.wish("dark")
        pdf = self.folder / "page.pdf"
        page.pdf(pdf)
        self.assertEqual(page.run("document.documentElement.dataset.theme"), "dark")
        boxes = subprocess.run(
            ["pdftotext", "-bbox", pdf, "-"], capture_output=True, text=True, check=True
        ).stdout
        width = float(boxes.split('<page width="')[1].split('"')[0])
        self.assertGreater(width, 800)  # A4, landscape
        for right in (float(part.split('"')[0]) for part in boxes.split('xMax="')[1:]):
            self.assertLess(right, width)
        text = subprocess.run(
            ["pdftotext", "-layout", pdf, "-"], capture_output=True, text=True, check=True
        ).stdout
        measurements = [
            page for page in text.split("\f") if "async_bcsr" in page and "needs compute" in page
        ]
        self.assertGreater(len(measurements), 1)
        self.assertEqual(
            sum(page.count("async_bcsr") for page in text.split("\f")), 60 + 2
        )  # kernels, troubles
        for words in measurements[:-1]:
            for heading in (
                "matrix",
                "kernel",
                "hot",
                "cold",
                "GFLOP/s",
                "preparation",
                "group",
                "picked",
            ):
                self.assertIn(heading, words)

    def test_a_screen_reader_finds_names_for_all_controls_and_tables(self):
        page = self.open()
        page.run("document.querySelectorAll('details').forEach(d => d.open = true)")
        labels = page.labels()
        for role in ("button", "searchbox", "checkbox", "region", "table", "search", "navigation"):
            names = [name for r, name in labels if r == role]
            self.assertTrue(names, f"no {role}")
            self.assertTrue(all(names), f"{role} without a name: {names}")
        self.assertIn(("heading", "The answer for each matrix"), labels)
        self.assertEqual(page.run("document.documentElement.lang"), "en")
        self.assertEqual(page.run("document.querySelectorAll('th:not([scope])').length"), 0)

    def test_a_large_run_stays_responsive(self):
        rows = []
        for i, n in itertools.product(range(125), (32, 64, 128, 256)):
            rows += [row(f"m{i}", "rsh", 8.0 + i, n), row(f"m{i}", "async_wcsr", 9.0, n)]
            rows += [
                row(f"m{i}", "cusparse_csr_default", 18.0, n),
                row(f"m{i}", "async_bcsr", None, n),
            ]
        self.assertEqual(len(rows), 2000)
        page = self.open(self.write(rows))
        self.assertLess(page.run("document.querySelectorAll('#row-table tbody tr').length"), 400)
        # Filtering and sorting draw as few rows as the page began with, not all of them.
        for action in ("filter()", f"document.querySelector({self.head('hot, µs')!r}).click()"):
            page.run(action)
            self.assertLess(page.run("document.querySelectorAll('#row-table tbody tr').length"), 400, action)
        page.run("document.querySelector('#rows .more').scrollIntoView()")
        page.wait("document.querySelectorAll('#row-table tbody tr').length >= 300")

    def test_hostile_names_stay_text(self):
        page = self.open()
        self.assertEqual(page.run("document.querySelectorAll('body script:not(#data)').length"), 1)
        page.run("document.querySelector('#row-table tbody tr:last-child .open').click()")
        self.assertEqual(page.run("document.querySelectorAll('dialog script').length"), 0)


if __name__ == "__main__":
    main(None if browser.CHROMIUM else browser.REASON)
