"""Result documents of `spmmbench run --json` as plot.py and report.py see them."""

import json
import math
from collections import defaultdict

SCHEMA_VERSION = 1
STATUSES = ("ok", "wrong", "skipped", "failed", "timeout")


class InputError(Exception):
    """A file that is no result document; the message names it."""


def number(value):
    """A JSON number or one of the words that stand for a non-finite one; None stays None."""
    if isinstance(value, str):
        return {"never": math.inf, "inf": math.inf, "nan": math.nan}.get(value)
    return value


def load_document(path):
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(document, dict) or not {"schema_version", "context", "rows"} <= set(document):
        raise InputError(f"{path}: expected a result document of `spmmbench run --json`")
    if document["schema_version"] != SCHEMA_VERSION:
        raise InputError(
            f"{path}: schema version {document['schema_version']}, expected {SCHEMA_VERSION}"
        )
    return document


def hot_us(row):
    return row["hot"]["median_us"] if row["hot"] else None


def cold_us(row):
    return row["cold"]["median_us"] if row["cold"] else None


def preprocessing_ms(row):
    return sum(number(ms) for stage, ms in row["stages_ms"].items() if stage != "load")


def density(row):
    matrix = row["matrix"]
    return matrix["nnz"] / (matrix["rows"] * matrix["cols"])


def case_of(row):
    """What rows must share to be comparable: the problem, whatever computes it."""
    return (row["matrix"]["sha256"] or row["matrix"]["source"], row["n"], row["layout"])


def geomean(values):
    values = [v for v in values if v is not None and v > 0 and math.isfinite(v)]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def median(values):
    values = sorted(v for v in values if v is not None)
    if not values:
        return None
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


class Results:
    """The rows of one or several documents, grouped into series.

    A series is what a curve shows: kernel (with its options), precision, C type and reordering. Its
    label leaves out what all series share. Rows that treat A as binary are kept apart from any
    ranking, as are wrong ones.
    """

    def __init__(self, documents):
        self.documents = documents
        self.rows = [row for document in documents for row in document["rows"]]
        self.precisions = sorted({row["precision"] for row in self.rows})
        self.ns = sorted({row["n"] for row in self.rows})
        reorders = {row["reorder"] for row in self.rows}
        c_types = {row["c_type"] for row in self.rows}
        for row in self.rows:
            label = row["kernel"]
            if len(self.precisions) > 1:
                label += " " + row["precision"]
            if len(c_types) > 1:
                label += " -> " + row["c_type"]
            if len(reorders) > 1 and row["reorder"] != "none":
                label += f" [{row['reorder']}]"
            if row["binary"]:
                label += " (binary A)"
            row["label"] = label

    def measured(self):
        """Rows with a verified result and a time."""
        return [row for row in self.rows if row["status"] == "ok" and row["hot"]]

    def by_series(self, rows=None):
        """label -> rows; own kernels first, then baselines, each by name."""
        groups = defaultdict(list)
        for row in self.measured() if rows is None else rows:
            groups[row["label"]].append(row)
        return dict(sorted(groups.items(), key=lambda item: (item[1][0]["baseline"], item[0])))

    def by_case(self):
        groups = defaultdict(list)
        for row in self.rows:
            groups[case_of(row)].append(row)
        return dict(groups)

    def winners(self):
        """(case, precision) -> the fastest verified row that reads A's values."""
        best = {}
        for row in self.measured():
            key = (*case_of(row), row["precision"])
            if not row["binary"] and (key not in best or hot_us(row) < hot_us(best[key])):
                best[key] = row
        return best

    def summary(self):
        """One dictionary per series: counts, geometric means and medians. Best first."""
        winners = {id(row) for row in self.winners().values()}
        lines = []
        for label, rows in self.by_series(self.rows).items():
            ok = [row for row in rows if row["status"] == "ok" and row["hot"]]
            line = {status: sum(row["status"] == status for row in rows) for status in STATUSES}
            line |= {
                "label": label,
                "baseline": rows[0]["baseline"],
                "wins": sum(id(row) in winners for row in ok),
                "of_bound": geomean(number(row["of_bound"]) for row in ok),
                "preprocessing_ms": median(preprocessing_ms(row) for row in ok),
                "break_even": median(number(row["break_even_calls"]) for row in ok),
            }
            line["cases"] = {}
            for name in ("cusparse_default_fp32", "cusparse_best", "cublas"):
                ratios = [row["speedup"][name] for row in ok if row["speedup"][name]]
                line[name], line["cases"][name] = geomean(ratios), len(ratios)
            lines.append(line)
        return sorted(lines, key=lambda ln: (ln["baseline"], -(ln["of_bound"] or 0), ln["label"]))
