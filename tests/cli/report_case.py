"""What the tests of the scripts that read results share: a document made here, and how to run a script."""

import contextlib
import importlib
import io
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from cli_case import python_with_packages

SOURCE = pathlib.Path(os.environ.get("SPMMBENCH_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
sys.path.insert(0, str(SOURCE / "scripts"))
HOSTILE = "a<script>alert(1)</script>&\"'"


PYTHON = python_with_packages("jinja2", "matplotlib")
REASON = "no Python with matplotlib and jinja2"


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


def picked(kernel, why):
    return {"kernel": kernel, "measured_us": {}, "remembered": False, "why": why}


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
        "pick": picked("rsh", "<short> rows") if kernel == "auto" else None,
        "precision": "fp16",
        "c_type": "fp32",
        "layout": "row",
        "reorder": "none",
        "status": "ok",
        "reason": "",
        "a_memory": "host",
        "stages_ms": (
            {"load": 500.0, "upload": 0.1}
            if baseline
            else {"load": 500.0, "build": 3.0, "upload": 1.0}
        ),
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
        "calls_us": {},
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
        out["speedup"] |= {"eigen_fp32": None, "eigen": None}
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
    return {"schema_version": 1, "context": context, "complete": True, "rows": rows, "answers": answers_of(rows)}


def answers_of(rows):
    """What the program would write: the lower envelope of preparation + calls x time of each group."""
    groups = {}
    for one in rows:
        if one["status"] == "ok" and one["hot"] and not one["binary"]:
            key = (one["matrix"]["name"], one["matrix"]["source"], one["n"], one["layout"], one["precision"],
                   one["c_type"])  # fmt: skip
            groups.setdefault(key, []).append(one)
    with_kernels = {key[:4] for key, group in groups.items() if not all(r["baseline"] for r in group)}
    out = []
    for key, group in groups.items():
        if all(r["baseline"] for r in group) and key[:4] in with_kernels:
            continue
        costs = [(sum(ms for stage, ms in r["stages_ms"].items() if stage != "load"), r["hot"]["median_us"], r)
                 for r in group]  # fmt: skip
        steps, calls = [], 1
        while True:
            best = min(costs, key=lambda cost: (1e3 * cost[0] + calls * cost[1], cost[1]))
            steps.append({"from_calls": calls, "kernel": best[2]["kernel"], "reorder": best[2]["reorder"],
                          "prepare_ms": best[0], "us": best[1], "of_bound": best[2]["of_bound"]})  # fmt: skip
            costs = [cost for cost in costs if cost[1] < 0.99 * best[1]]
            if not costs:
                break
            calls = max(calls + 1, min(math.ceil(1e3 * (c[0] - best[0]) / (best[1] - c[1])) for c in costs))
        names = ("matrix", "source", "n", "layout", "precision", "c_type")
        out.append({**dict(zip(names, key)), "steps": steps})
    return out


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


class ReportCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, rows, name="results.json", **context):
        made = document(rows)
        made["context"] |= context
        path = self.folder / name
        path.write_text(json.dumps(made))
        return path

    def run_script(self, name, *args):
        """In this process, which has the packages: loading them takes a second."""
        script, command_line = map(importlib.import_module, (name.removesuffix(".py"), "command_line"))
        arguments = [*map(str, args)]
        out, err = io.StringIO(), io.StringIO()
        with (mock.patch.object(sys, "argv", [name, *arguments]),
              contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)):
            try:
                command_line.run(lambda: script.main(arguments))
            except SystemExit as end:
                code = end.code
            if isinstance(code, str):  # as Python does with it
                print(code, file=sys.stderr)
                code = 1
        return subprocess.CompletedProcess(arguments, code or 0, out.getvalue(), err.getvalue())

    def start_script(self, name, *args):
        command = [PYTHON, str(SOURCE / "scripts" / name), *map(str, args)]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)

    def report(self, *paths, options=()):
        out = self.folder / "report.html"
        result = self.run_script("report.py", *paths, "--out", out, *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return out

    def without_figures(self):
        """Pages in this context have none: they take most of the time to draw."""
        return mock.patch.object(importlib.import_module("report_page"), "drawn_figures", return_value=([], ""))

    def text_of_report(self, *paths, options=()):
        with self.without_figures():
            return self.report(*paths, options=options).read_text(encoding="utf-8")

    def assert_holds(self, text, part):
        """As assertIn, without the whole page in the message."""
        self.assertTrue(part in text, f"{part!r} is missing")

    def assert_one_line(self, result, expected):
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn(expected, result.stderr)

# Place, value and what the scripts and the program say of it.
DAMAGES = (
    ("context.git_revision", None, "'git_revision': expected text, got null"),
    ("context.seed", 2**64, "'seed': expected an integer"),
    ("context.timer_floor_us", [], "'timer_floor_us': expected a number"),
    ("context.clocks_before.sm_mhz", "fast", "'clocks_before.sm_mhz': expected an integer"),
    ("context.device.sm_count", -1, "'device.sm_count': expected"),
    ("rows.0.matrix.source", "", "rows[0]: 'matrix.source': expected text, not empty"),
    ("rows.0.matrix.nnz", math.inf, "JSON"),
    ("rows.0.matrix.nnz", 10**30, "rows[0]: 'matrix.nnz': expected"),
    ("rows.1.n", 0, "rows[1]: 'n': expected at least 1, got 0"),
    ("rows.1.n", True, "rows[1]: 'n': expected an integer, got true"),
    ("rows.1.status", "fine", "rows[1]: 'status': expected"),
    ("rows.1.baseline", "x", "rows[1]: 'baseline': expected true or false"),
    ("rows.1.compulsory_bytes", [], "rows[1]: 'compulsory_bytes': expected a number"),
    ("rows.1.format.bytes", "many", "rows[1]: 'format.bytes': expected an integer"),
    ("rows.1.verify.error_over_bound", 2, "'rows[1]': esmm is ok with an error of 2 x its bound"),
    ("rows.1.verify", None, "'rows[1]': esmm is ok without a verification"),
    ("rows.0.metrics.share", {}, "rows[0]: 'metrics"),
    ("rows.0.compulsory_bytes", -1, "rows[0]: 'compulsory_bytes': expected at least 0, got -1"),
    ("rows.0.calls_us", {"3": 0}, "'rows[0]': rsh has times of calls, of which 3 took 0 us"),
    ("rows.0.stages_ms.build", -1, "'rows[0]': rsh has a stage 'build' of -1 ms"),
    ("rows.0.hot", {}, "rows[0]: expected the field 'hot.median_us'"),
    ("rows.0.hot.median_us", 80, "'rows[0]': rsh has a hot median of 80 us, and samples with one of 8 us"),
    ("rows.0.cold.samples_us", [0, 13], "'rows[0]': rsh has cold samples that are no time above 0"),
    ("rows.0.cold.samples_us", [], "rows[0]: 'cold.samples_us': expected a list, not empty"),
    ("rows.1.kernel", "rsh", "'rows[1]': rsh has a second row at N = 128 on m"),
    ("complete", 1, "'complete': expected true or false, got 1"),
)
# The program does not read answers: it makes them from the rows.
DAMAGED_ANSWERS = (
    ("answers.0.n", {}, "'answers[0].n': expected an integer"),
    ("answers.0.steps.0.from_calls", -1, "'answers[0].steps[0].from_calls': expected at least 1"),
    ("answers.0.steps.0.reorder", [], "'answers[0].steps[0].reorder': expected text"),
)


def damaged_at(place, value):
    """A document of three rows, whose value at `place` is this one."""
    made = document([row("m", kernel, us) for kernel, us in (("rsh", 8.0), ("esmm", 9.0), ("auto", None))])
    made["rows"][0]["metrics"] = {"share": 1.0}
    *above, last = place.split(".")
    part = made
    for step in above:
        part = part[int(step) if step.isdigit() else step]
    part[last] = value
    return made


def main(missing=None):
    missing = missing or (REASON if PYTHON is None else None)
    if missing:
        print(missing)
        sys.exit(77)
    if PYTHON != sys.executable:  # tests that import the figures need the packages themselves
        os.execv(PYTHON, [PYTHON, *sys.argv])
    unittest.main()
