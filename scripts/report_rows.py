"""The rows of the report for the page's script, and what can be filtered."""

import json
import math
from collections import defaultdict

from markupsafe import Markup

from report_tables import digits
from result_data import SPEEDUPS, STATUSES, hot_us, number, preparation_ms
from result_series import case_of


def short(value, infinite="∞"):
    """Four significant digits: more than a measurement holds."""
    value = number(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if math.isinf(value):
        return infinite
    return float(f"{value:.4g}") if isinstance(value, float) else value


def short_timing(timing):
    if not timing:
        return None
    samples = timing["samples_us"]
    numbers = [short(timing[name]) for name in ("median_us", "q1_us", "q3_us", "min_us")]
    return [*numbers, timing.get("launches_per_sample", 1), [short(sample) for sample in samples]]


def short_format(form):
    if not form:
        return None
    names = ("name", "bytes", "tiles", "windows", "fill", "nnz_per_tile", "window_imbalance")
    return {name.replace("_", " "): short(form[name]) if name != "name" else str(form[name])
            for name in names if form.get(name) is not None}  # fmt: skip


def pick_texts(pick):
    """What `auto` picked and measured, as the page shows it."""
    if pick is None:
        return {}
    times = ", ".join(f"{kernel} {us:.1f} us" for kernel, us in pick["measured_us"].items())
    kept = " (remembered)" if times and pick["remembered"] else ""
    return {"picked": pick["kernel"], "why": pick["why"], "measured": times + kept}


FIELDS = ("m", "run", "n", "kernel", "label", "precision", "c_type", "order", "layout", "status", "reason",
          "baseline", "best", "answer", "hot", "cold", "gflops", "of_bound", "x_default", "x_best", "x_cublas",
          "x_eigen32", "x_eigen",
          "preparation", "stages", "pays", "against", "params", "format", "error", "bytes", "command")  # fmt: skip


def script_data(results, found):
    """All rows as compact JSON that is safe inside a script element."""
    best = {id(min(rows, key=hot_us)) for rows in results.contested().values()}
    answer_of = {case: i for i, case in enumerate(found)}
    matrices, place, rows = [], {}, []
    for row in results.rows:
        matrix = row["matrix"]
        key = (row["matrix_key"], row["group"])
        if key not in place:
            place[key] = len(matrices)
            names = ("rows", "cols", "nnz")
            matrices.append(
                {
                    "matrix": matrix["name"], "matrix_key": key[0], "group": row["group"],
                    **{name: matrix[name] for name in names}, "mean": short(matrix["mean_row"]),
                    "longest": matrix["max_row"], "cv": short(matrix["cv_row"]),
                }
            )  # fmt: skip
        speedup = row["speedup"]
        values = [place[key], row["run"], row["n"], row["kernel"], row["label"], row["precision"]]
        values += [row["c_type"], row["reorder"], row["layout"], row["status"], row["reason"]]
        values += [int(row["baseline"]), int(id(row) in best), answer_of.get(case_of(row), -1)]
        values += [short_timing(row["hot"]), short_timing(row["cold"])]
        values += [short(row["gflops"]), short(row["of_bound"])]
        values += [short(speedup[k]) for k in SPEEDUPS]
        values += [short(float(preparation_ms(row)))]
        values += [{stage: short(ms) for stage, ms in row["stages_ms"].items()}]
        values += [None if row["baseline"] else short(row["break_even_calls"], "never")]
        values += [row["break_even_against"]]
        values += [
            {**{key: str(value) for key, value in row["params"].items()}, **pick_texts(row["pick"])},
            short_format(row["format"]),
        ]
        values += [
            short((row["verify"] or {}).get("error_over_bound")),
            row["device_bytes"],
            row["command"],
        ]
        rows.append(values)
    runs = [document["label"] for document in results.documents]
    data = {"runs": runs, "fields": FIELDS, "matrices": matrices, "rows": rows}
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def facets(results):
    """What can be filtered: the choices of each field that has several."""
    labels = [document["label"] for document in results.documents]
    out = []
    for name, title, field, order in (
        ("kernel", "Kernel", "kernel", str),
        ("precision", "Precision", "precision", str),
        ("n", "N", "n", int),
        ("group", "Group", "group", str),
        ("status", "Status", "status", STATUSES.index),
        ("run", "Run", "run", int),
    ):
        counts = defaultdict(int)
        for row in results.rows:
            counts[row[field]] += 1
        if len(counts) > 1 or name == "status":
            choices = [
                {
                    "value": value,
                    "name": labels[value] if name == "run" else value,
                    "count": digits(count),
                }
                for value, count in sorted(counts.items(), key=lambda item: order(item[0]))
            ]
            out.append({"name": name, "title": title, "choices": choices})
    return out
