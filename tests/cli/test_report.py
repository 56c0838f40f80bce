#!/usr/bin/env python3
"""scripts/plot.py and scripts/report.py on a document made here."""

import html.parser
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("SPMMBENCH_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
HOSTILE = "a<script>alert(1)</script>&\"'"


def python_with_matplotlib():
    """The distribution's interpreter may have it where the first on PATH has not."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        test = [candidate, "-c", "import matplotlib"]
        if (
            pathlib.Path(candidate).exists()
            and not subprocess.run(test, capture_output=True).returncode
        ):
            return candidate
    return None


PYTHON = python_with_matplotlib()


def timing(us):
    return {
        "median_us": us,
        "q1_us": us * 0.98,
        "q3_us": us * 1.02,
        "min_us": us * 0.97,
        "n": 3,
        "launches_per_sample": 10,
        "samples_us": [us, us * 0.97, us * 1.03],
    }


def row(matrix, kernel, us, n=128, density=0.01, **changes):
    """A verified row; `us` None makes a skipped one."""
    baseline = kernel.startswith(("cusparse", "cublas"))
    size = 10_000
    out = {
        "matrix": {
            "name": matrix,
            "source": f"m/{matrix}.mtx",
            "sha256": matrix,
            "rows": size,
            "cols": size,
            "nnz": int(size * size * density),
            "mean_row": size * density,
            "max_row": 400,
            "cv_row": 0.5,
        },
        "n": n,
        "kernel": kernel,
        "baseline": baseline,
        "binary": False,
        "params": {},
        "precision": "fp16",
        "c_type": "fp32",
        "layout": "row",
        "reorder": "none",
        "status": "ok",
        "reason": "",
        "stages_ms": {"load": 500.0, "build": 3.0, "upload": 1.0},
        "format": None,
        "device_bytes": 1000,
        "verify": {
            "error_over_bound": 0.1,
            "worst_row": 0,
            "worst_col": 0,
            "relative_frobenius": 0,
        },
        "hot": None,
        "cold": None,
        "gflops": None,
        "issued_flops": None,
        "compulsory_bytes": 8e6,
        "bound_us": 2.0,
        "of_bound": None,
        "speedup": {"cusparse_default_fp32": None, "cusparse_best": None, "cublas": None},
        "break_even_calls": None,
        "metrics": {},
        "command": f"spmmbench run m/{matrix}.mtx -n {n} -k {kernel}",
    }
    if us is None:
        out |= {"status": "skipped", "reason": "needs compute capability 9.0", "verify": None}
    else:
        out |= {"hot": timing(us), "cold": timing(us + 5), "of_bound": 2.0 / us, "gflops": 100.0}
        out["speedup"] = {
            "cusparse_default_fp32": 20 / us,
            "cusparse_best": 16 / us,
            "cublas": 40 / us,
        }
        if not baseline:
            out["break_even_calls"] = 4e3 / (20 - us) if us < 20 else "never"
            out["format"] = {
                "name": "wcsr",
                "bytes": 10**7,
                "index_bytes": 10**6,
                "stored": 2 * 10**6,
                "tiles": 5,
                "windows": 3,
                "fill": 0.5,
                "nnz_per_tile": 8,
                "nnz_per_window": 9,
                "window_imbalance": 2,
                "extra": {},
            }
    return out | changes


def document(rows):
    device = {
        "kind": "cuda",
        "index": 0,
        "name": "NVIDIA H200",
        "uuid": "",
        "compute_capability": 90,
        "sm_count": 132,
        "l2_bytes": 60 << 20,
        "memory_bytes": 140 << 30,
        "driver_version": "580",
        "runtime_version": "13.0",
        "cusparse_version": "12.6",
        "cublas_version": "",
    }
    clocks = dict.fromkeys(("sm_mhz", "memory_mhz", "temperature_c", "power_w", "throttle_reasons"))
    context = {
        "tool_version": "0.1.0",
        "git_revision": "0123abcd",
        "build_flags": "Release",
        "started_utc": "2026-11-20T09:00:00Z",
        "hostname": HOSTILE,
        "argv": ["spmmbench", "run", HOSTILE],
        "seed": 1,
        "device": device,
        "copy_gb_per_s": 4310.0,
        "timer_floor_us": 4.8,
        "clocks_before": clocks,
        "clocks_after": clocks,
        "protocol": {"flush": "126 MB"},
    }
    return {"schema_version": 1, "context": context, "complete": True, "rows": rows}


def many_rows():
    rows = []
    for i, density in enumerate((0.01, 0.02, 0.05, 0.1)):
        for n in (64, 128):
            rows += [
                row(f"m{i}", "cusparse_csr_default", 18.0 + i, n, density),
                row(f"m{i}", "cublas_dense", 40.0, n, density),
                row(f"m{i}", "async_wcsr", 9.0 + 4 * i, n, density),
                row(f"m{i}", "rsh_spmm?window=16", 8.0 + i, n, density, reorder="rsh"),
                row(f"m{i}", "async_bcsr", None, n, density),
            ]
    wrong = row(HOSTILE, "async_wcsr", 1.0, status="wrong", reason=HOSTILE)
    wrong["verify"] |= {"error_over_bound": "inf", "relative_frobenius": "nan"}
    return rows + [wrong]


class Page(html.parser.HTMLParser):
    """Counts tags, collects addresses and the cells of each table."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.addresses, self.tables, self.in_cell = [], [], [], False
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [v for k, v in attributes if k in ("src", "href")]
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        self.in_cell = tag in ("td", "th")
        if self.in_cell:
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        self.in_cell = False

    def handle_data(self, data):
        if self.in_cell:
            self.tables[-1][-1][-1] += data


@unittest.skipIf(PYTHON is None, "no Python with matplotlib")
class ReportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_script(self, name, rows, *args):
        results = self.folder / "results.json"
        results.write_text(json.dumps(document(rows)))
        return self.run_on(name, results, *args)

    def run_on(self, name, *args):
        command = [PYTHON, str(SOURCE / "scripts" / name), *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def report(self, rows):
        out = self.folder / "report.html"
        result = self.run_script("report.py", rows, "--out", out)
        self.assertEqual(result.returncode, 0, result.stderr)
        return out.read_text(encoding="utf-8")

    def test_the_page_stands_alone_and_escapes_what_it_shows(self):
        source = self.report(many_rows())
        page = Page(source)
        self.assertNotIn("script", page.tags)
        self.assertNotIn("link", page.tags)
        self.assertEqual(page.tags.count("img"), 6)
        for address in page.addresses:
            self.assertTrue(address.startswith("data:image/"), address[:60])
        self.assertNotIn("http", source.split("<body>")[1].replace("data:image", ""))
        self.assertIn("&lt;script&gt;", source)

    def test_the_tables_hold_the_right_numbers(self):
        kernels, winners, troubles = Page(self.report(many_rows())).tables[:3]
        line = next(cells for cells in kernels if cells[0] == "async_wcsr")
        self.assertEqual(line[1:6], ["8", "1", "0", "0", "0"])
        self.assertEqual(line[6], "1.40")  # (20/9 * 20/13 * 20/17 * 20/21)^(1/4)
        best = next(cells for cells in kernels if cells[0].startswith("rsh_spmm"))
        self.assertEqual(best[:2], ["rsh_spmm?window=16 [rsh]", "8"])
        self.assertEqual(best[5], "8")  # the wrong row is faster and wins nothing
        self.assertEqual(len(winners), 1 + 8)
        self.assertEqual(troubles[1][:4], ["wrong", "async_wcsr", "1", HOSTILE])
        self.assertEqual(
            troubles[2][:4], ["skipped", "async_bcsr", "8", "needs compute capability 9.0"]
        )

    def test_a_document_without_a_single_measurement_still_makes_a_page(self):
        source = self.report([row("m", "async_bcsr", None)])
        self.assertIn("Not shown for lack of data", source)
        self.report([])

    def test_every_figure_is_drawn_where_there_is_data(self):
        out = self.folder / "figures"
        result = self.run_script("plot.py", many_rows(), "--out", out, "--format", "png,svg")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        self.assertEqual(len(list(out.glob("*.png"))), 6)
        self.assertEqual(len(list(out.glob("*.svg"))), 6)

    def test_missing_data_leaves_a_figure_out_with_the_reason(self):
        out = self.folder / "figures"
        result = self.run_script("plot.py", [row("m", "cpu_csr", 30.0)], "--out", out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("density_curves: left out: no shape with three densities", result.stderr)
        result = self.run_script("plot.py", many_rows(), "--out", out, "--only", "no_such_figure")
        self.assertNotEqual(result.returncode, 0)

    def test_a_file_that_is_no_result_document_is_one_line(self):
        broken = self.folder / "broken.json"
        for content in ("{", "[]", "{}", '{"schema_version": 99, "context": {}, "rows": []}'):
            broken.write_text(content)
            for script in ("plot.py", "report.py"):
                result = self.run_on(script, broken, "--out", self.folder / "x")
                self.assertEqual(result.returncode, 1)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertIn("broken.json", result.stderr)
        self.assertEqual(self.run_on("report.py", self.folder / "absent.json").returncode, 1)


if __name__ == "__main__":
    if PYTHON is None:
        print("no Python with matplotlib")
        sys.exit(77)
    unittest.main()
