"""The tables and facts of the report: cells with what is shown and what they are sorted by."""

import copy
import math
from collections import defaultdict

from markupsafe import Markup

from command_line import numbered
from figures.style import COLOURS, GREYS
from result_data import SPEEDUPS, STATUSES, density, hot_us, number, preparation_ms
from result_series import DENSE_FILL, answer_key, total_us

MANY_CALLS = 1e6  # right end of the strip of an answer
MOST_ON_CARDS = 2  # runs whose speed-ups fit above the page; of more, the table of kernels has them
SPEEDUP_NAMES = dict(zip(SPEEDUPS, ("cuSPARSE default fp32", "best cuSPARSE", "cuBLAS", "Eigen fp32", "Eigen")))
NARROW = "\u202f"  # no-break space between thousands

# Colours of the figures as the page's variables, so that they follow light and dark.
INK_VARIABLES = {
    "#ffffff": "none",
    "#1b1f24": "var(--ink)",
    "#5c6670": "var(--soft)",
    "#dfe3e8": "var(--line)",
}
VARIABLES = {
    **INK_VARIABLES,
    "#c9ced4": "var(--faint)",
    "#8a8f95": "var(--grey2)",
    **{colour.lower(): f"var(--c{i + 1})" for i, colour in enumerate(COLOURS)},
    **{colour.lower(): f"var(--grey{i})" for i, colour in enumerate(GREYS) if i},
}


def digits(value, decimals=None):
    """A number for reading: three significant digits, or so many decimals."""
    value = number(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if math.isinf(value):
        return "never"
    if isinstance(value, int) and decimals is None:
        return f"{value:,}".replace(",", NARROW)
    if decimals is not None:
        least = 0.1**decimals
        return (
            f"{value:.{decimals}f}" if not 0 < abs(value) < least / 2 else f"< {least:.{decimals}f}"
        )
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}".replace(",", NARROW)
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def duration(us):
    """A time in the unit that reads best."""
    for unit, name in ((1e6, "s"), (1e3, "ms")):
        if us >= unit:
            return f"{digits(us / unit)} {name}"
    return f"{digits(float(us))} µs"


# ---- tables ------------------------------------------------------------------------------------


def cell(text, value=None, kind=""):
    if value in ("never", "inf", "nan"):
        value = number(value)
    if isinstance(value, float) and not math.isfinite(value):
        value = 1e300 if value > 0 else None  # "never" sorts after every number
    return {"text": text, "value": value, "kind": kind}


def figure_cell(value, decimals=None, kind=""):
    return cell(digits(value, decimals), value, kind)


def table(columns, rows):
    """columns: (name, kind). A column that is empty in every row is left out."""
    used = [
        i
        for i in range(len(columns))
        if not rows or any(r["cells"][i]["text"] != "–" for r in rows)
    ]
    return {
        "columns": [{"name": columns[i][0], "kind": columns[i][1]} for i in used],
        "rows": [{**row, "cells": [row["cells"][i] for i in used]} for row in rows],
    }


def by_run(results):
    """[(label of the run, its results)]: a mean over several runs would be of none."""
    out = []
    for run, document in enumerate(results.documents):
        part = copy.copy(results)
        part.rows = [row for row in results.rows if row["run"] == run]
        out.append((document["label"], part))
    return out


def kernel_table(results):
    runs = by_run(results)
    several = len(runs) > 1
    columns = [("kernel", ""), *[("run", "")] * several, ("verified", "n"), ("wrong", "n"), ("failed", "n")]
    columns += [("skipped", "n"), ("fastest in", "n")]
    columns += [(f"× {name}", "n") for name in SPEEDUP_NAMES.values()]
    columns += [("of the bound", "n"), ("preparation, ms, median", "n")]
    columns += [("pays at, calls, median", "n")]
    rows = []
    for run, line in ((run, line) for run, part in runs for line in part.summary()):
        bad = line["failed"] + line["timeout"]
        cells = [cell(line["label"]), *[cell(run)] * several, figure_cell(line["ok"])]
        cells += [figure_cell(count, kind="bad" if count else "") for count in (line["wrong"], bad)]
        cells += [figure_cell(line["skipped"]), figure_cell(line["wins"])]
        for name in SPEEDUPS:
            text = f"{digits(line[name], 2)} ({line['cases'][name]})" if line[name] else "–"
            cells.append(cell(text, line[name]))
        cells += [figure_cell(line["of_bound"], 2), figure_cell(line["preparation_ms"])]
        cells.append(cell("–") if line["baseline"] else figure_cell(line["break_even"]))
        rows.append({"kind": "baseline" if line["baseline"] else "", "cells": cells})
    return table(columns, rows)


def step_cost(row, calls, last):
    if calls == 1:
        return f"{duration(total_us(row, 1))} in all"
    text = f"{duration(hot_us(row))} each, {duration(1e3 * preparation_ms(row))} before"
    share = number(row["of_bound"])
    return text + (f", {digits(share, 2)} of the bound" if last and share else "")


def choices_shown(steps, rows):
    """The rows of auto whose choice an answer explains: those that are steps of it, else the first by
    name, which is plain auto."""
    explained = [row for _, row in steps if row["pick"]]
    others = [row for row in rows if row["pick"]]
    return explained or sorted(others, key=lambda row: row["kernel"])[:1]


def answer_cell(templates, found, choices, look):
    """The steps of an answer over the number of calls, in words and as a strip on a logarithmic axis."""
    steps = []
    for i, (calls, row) in enumerate(found):
        until = found[i + 1][0] if i + 1 < len(found) else max(MANY_CALLS, 10 * calls)
        picked = (row["pick"] or {}).get("kernel")
        colour = look[row["label"]]["color"].lower()
        steps.append(
            {
                "when": "1 call:" if calls == 1 else f"from {digits(calls)} calls:",
                "label": row["label"] + (f" (picks {picked})" if picked else ""),
                "cost": step_cost(row, calls, i + 1 == len(found)),
                "width": math.log10(until / calls),
                "colour": VARIABLES.get(colour, colour),
            }
        )
    return cell(Markup(templates.get_template("answer.html").render(steps=steps, choices=choices)))


def answer_table(results, found, baseline, look, templates):
    fields = ("run", "layout", "c_type", "precision")
    several = {name: len({steps[-1][1][name] for steps in found.values()}) > 1 for name in fields}
    columns = [("matrix", ""), ("what takes the least time", "wide"), ("N", "n"), ("inputs", "")]
    columns += [("fastest per call", ""), ("its hot time, µs", "n")]
    divisors = [name for name in SPEEDUPS if name in ("cusparse_default_fp32", "eigen_fp32", baseline)]
    columns += [(f"× {SPEEDUP_NAMES[name]}", "n") for name in divisors]
    columns += [("of the bound", "n"), ("taken over at, calls", "n"), ("nonzeros", "n")]
    cases = results.cases()
    rows = []
    for key, case in enumerate(found):
        steps = found[case]
        calls, last = steps[-1]
        matrix = last["matrix"]
        more = [f"{digits(matrix['rows'])} × {digits(matrix['cols'])}", last["group"]]
        more += [f"C in {last['c_type']}"] * several["c_type"]
        more += [f"B and C {last['layout']}-major"] * several["layout"]
        more += [results.documents[last["run"]]["label"]] * several["run"]
        named = Markup("{} <small>{}</small>").format(matrix["name"], ", ".join(more))
        choices = choices_shown(steps, cases[case])
        cells = [cell(named, matrix["name"]), answer_cell(templates, steps, choices, look)]
        cells.append(figure_cell(last["n"]))
        cells.append(cell(last["precision"] if several["precision"] else "–"))
        cells += [cell(last["label"]), figure_cell(hot_us(last))]
        cells += [figure_cell(last["speedup"][name], 2) for name in divisors]
        cells += [figure_cell(last["of_bound"], 2), figure_cell(calls), figure_cell(matrix["nnz"])]
        rows.append({"kind": "", "key": key, "cells": cells})
    return table(columns, rows)


def answers_left_out(results):
    """[(name of the document, its answers, those of them that name a kernel without a row there)]."""
    rows = {answer_key(row) for row in results.rows}
    fields = ("source", "n", "layout", "precision", "c_type")
    out = []
    for run, document in enumerate(results.documents):
        named = [
            {(run, *map(answer.get, fields), step["kernel"], step["reorder"]) for step in answer["steps"]}
            for answer in document["answers"] or ()
        ]
        if left_out := sum(not keys <= rows for keys in named):
            out.append((document["name"], numbered(len(named), "answer"), left_out))
    return out


def trouble_table(results):
    """Everything without a verified time, by status and reason; the worst first."""
    groups = defaultdict(list)
    for row in results.rows:
        if row["status"] != "ok":
            groups[row["status"], row["label"], row["reason"]].append(row)
    order = [status for status in STATUSES if status != "ok"]
    rows = []
    for (status, label, reason), group in sorted(
        groups.items(), key=lambda item: (order.index(item[0][0]), item[0])
    ):
        names = list(dict.fromkeys(row["matrix"]["name"] for row in group))
        where = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        cells = [cell(label), cell(status, kind="" if status == "skipped" else "bad")]
        cells += [figure_cell(len(group)), cell(reason), cell(where)]
        rows.append({"kind": "", "cells": cells})
    columns = [
        ("kernel", ""),
        ("status", ""),
        ("cases", "n"),
        ("reason", "wide"),
        ("where", "wide"),
    ]
    return table(columns, rows)


# ---- header and context ------------------------------------------------------------------------


def cards(results, baseline):
    problems = sum(row["status"] in ("wrong", "failed", "timeout") for row in results.rows)
    matrices = len({row["matrix_key"] for row in results.rows})
    measured = len(results.measured())
    shown = [(digits(matrices), "matrix" if matrices == 1 else "matrices", False)]
    shown.append((digits(measured), "verified measurement" if measured == 1 else "verified measurements", False))
    shown.append((digits(problems), "wrong, failed or timed out", problems > 0))
    runs = by_run(results)
    for run, part in runs if len(runs) <= MOST_ON_CARDS else ():
        place = f" in {run}" if len(runs) > 1 else ""
        shown += [(value, what + place, False) for value, what in best_speedups(part, baseline)]
    return [{"value": value, "what": what, "bad": bad} for value, what, bad in shown]


def best_speedups(results, baseline):
    """[(mean speed-up, whose and over what)]: the best own kernel against each divisor. A dense product
    is one for matrices that are nearly dense: over graphs that are stored dense it says nothing."""
    dense = copy.copy(results)
    dense.rows = [row for row in results.rows if density(row) >= DENSE_FILL]
    out = []
    for key in SPEEDUPS:
        lines = (dense if key == "cublas" else results).summary()
        compared = [line for line in lines if line[key] and not line["baseline"]]
        if compared and key in ("cusparse_default_fp32", "cublas", "eigen_fp32", baseline):
            # A kernel that ran on a few matrices only does not speak for the run.
            most = max(line["cases"][key] for line in compared)
            best = max(
                (ln for ln in compared if 2 * ln["cases"][key] > most), key=lambda ln: ln[key]
            )
            what = f"{best['label']} over {SPEEDUP_NAMES[key]}, geometric mean of {best['cases'][key]}"
            out.append((f"{best[key]:.2f}×", what))
    return out


def context_facts(document):
    context, device = document["context"], document["context"]["device"]
    before, after = context["clocks_before"], context["clocks_after"]

    def change(name, unit):
        return f"{digits(before.get(name))} → {digits(after.get(name))} {unit}"

    def size(value, unit, name):
        return f"{digits(value / unit)} {name}" if value else ""

    hardware = [f"{device['sm_count']} SMs" if device["sm_count"] else ""]
    hardware += [
        size(device["l2_bytes"], 2**20, "MiB L2"),
        size(device["memory_bytes"], 2**30, "GiB"),
    ]
    versions = [(name, device[f"{key}_version"]) for name, key in (
        ("driver", "driver"), ("CUDA", "runtime"), ("cuSPARSE", "cusparse"), ("cuBLAS", "cublas"))]  # fmt: skip
    rates = ", ".join(f"{name} {digits(context[key])} {unit}" for name, key, unit in (
        ("gather", "gather_gb_per_s", "GB/s"), ("dense", "dense_tflops", "TFLOP/s")) if context.get(key))  # fmt: skip
    facts = [
        ("device", device["name"] + (f" ({device['uuid']})" if device["uuid"] else "")),
        ("hardware", ", ".join(filter(None, hardware))),
        ("copy bandwidth, read and written", f"{digits(context['copy_gb_per_s'])} GB/s"),
        ("rates that auto predicts with", rates),
        ("timer floor", f"{digits(context['timer_floor_us'])} µs"),
        ("clock", f"{change('sm_mhz', 'MHz')}, {change('temperature_c', '°C')}, throttle reasons "
                  f"{digits(before.get('throttle_reasons'))} → {digits(after.get('throttle_reasons'))}"),
        ("software", ", ".join(f"{name} {version}" for name, version in versions if version)),
        ("spmmbench", f"{context['tool_version']}, revision {context['git_revision']}, {context['build_flags']}"),
        ("started", f"{context['started_utc']} on {context['hostname']}"),
        ("seed", digits(context["seed"])),
        ("command", " ".join(map(str, context["argv"]))),
        ("protocol", ", ".join(f"{k} {v}" for k, v in context["protocol"].items() if v != "")),
        ("complete", "yes" if document["complete"] else "no: the run was interrupted"),
    ]  # fmt: skip
    return [(term, text) for term, text in facts if text]


def label_runs(documents):
    """Names of the runs: the files', numbered where they are the same."""
    names = [document["name"].removesuffix(".json") for document in documents]
    for i, document in enumerate(documents):
        again = names.count(names[i]) > 1
        document["label"] = f"{i + 1}: {names[i]}" if again else names[i]
