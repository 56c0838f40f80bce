"""The page of docs_tables.py on preparation and calls together."""

from collections import defaultdict

from docs_tables_data import cases_of, rows_of, table
from result_data import geomean


def calls_table(rows):
    """A line for each number of calls that was measured."""
    lines = []
    for calls in (key for key in rows[0] if key.isdigit()):
        ratios = defaultdict(list)
        for case in cases_of(rows, "matrix").values():
            took = {row["kernel"]: float(row[calls]) for row in case if row[calls]}
            ours = min(us for kernel, us in took.items() if not kernel.startswith(("auto", "cusparse")))
            vendor = min(us for kernel, us in took.items() if kernel.startswith("cusparse"))
            least = min(ours, vendor)
            ratios["auto"].append(took["auto"] / least)
            if f"auto?calls={calls}" in took:
                ratios["told"].append(took[f"auto?calls={calls}"] / least)
            ratios["ours"].append(vendor / ours)
            ratios["gain"].append(vendor / took["auto"])

        def cell(name, extreme, of=ratios):
            return f"{geomean(of[name]):.2f}, {extreme(of[name]):.2f}" if of[name] else ""

        lines.append([calls, cell("auto", max), cell("told", max), cell("gain", min), cell("ours", min)])
    return table(
        ["calls", "`auto`", "`auto?calls=` this", "`auto` against cuSPARSE", "the best of ours against cuSPARSE"],
        lines,
    )


def calls():
    rows = rows_of("h200/calls.csv")
    matrices = len({row["matrix"] for row in rows})
    text = f"""# Preparation and calls together

{matrices} general matrices, fp16, on an H200 (`results/h200/calls.csv`): the time of everything, from A in the memory of the GPU to the end of the last call, conversion and preparation included, as [`--calls-curve --a-memory cuda`](../running.md) measures it from a flushed cache. The first two columns are over the least time of the kernels that are not `auto`: mean and largest. The others are speed-ups over the fastest cuSPARSE algorithm: mean and least.
"""
    for n in sorted({int(row["n"]) for row in rows}):
        text += f"\n## N = {n}\n\n{calls_table([row for row in rows if int(row['n']) == n])}"
    return text
