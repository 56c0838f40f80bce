"""What the parts of docs_tables.py share: rows of results/, numbers as text, tables in Markdown."""

import csv
import json
import pathlib
from collections import defaultdict

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "results"


def rows_of(name):
    with open(RESULTS / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def document(name):
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))["rows"]


def us(row, kind="hot"):
    return float(row[f"{kind}_median_us"])


def digits(value, count=3):
    """A number with so many digits, never in the form 1e+03."""
    return f"{float(f'{value:.{count}g}'):.{max(0, count - len(str(int(value))))}f}"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def cases_of(rows, *keys):
    cases = defaultdict(list)
    for row in rows:
        cases[tuple(row[key] for key in keys)].append(row)
    return cases


def zeros_of(spec):
    return next(float(part[9:]) for part in spec.split("?")[1].split("&") if part.startswith("sparsity="))


def percent(share):
    return f"{100 * share:.4g} %"
