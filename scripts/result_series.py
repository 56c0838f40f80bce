"""The rows of one or several runs, grouped into series and cases, and the answer of each case.

A series is what a curve shows: kernel (with its options), precision, C type and reordering. A case is
what rows must share to be comparable: the run, the matrix, N, the layout, the precision, the type of C.
A matrix that a run read from two files, such as x.mtx and x.csr, is two, as in the program's tables.
"""

import csv
import fnmatch
import re
from collections import defaultdict

from result_data import (
    SPEEDUPS,
    STATUSES,
    InputError,
    density,
    geomean,
    hot_us,
    median,
    number,
    preparation_ms,
    readable,
)

# A matrix without a given group is named by its structure. What is a third full is multiplied like a
# dense one; 8 nonzeros per row fill one row window's width; 2 is well above any mesh and below the web.
DENSE_FILL = 0.02
SHORT_ROW = 8
SKEWED_CV = 2


def problem_of(row):
    """The product whatever computes it, in whatever precision; runs are kept apart."""
    return (row["run"], row["matrix_key"], row["n"], row["layout"])


def case_of(row):
    return (*problem_of(row), row["precision"], row["c_type"])


def name_matrices(rows):
    """Gives the rows of a run a matrix_key, as identity_of of the program: name and content, without a
    checksum name and dimensions. Where it was read from is not compared."""
    for row in rows:
        matrix = row["matrix"]
        content = matrix["sha256"] or f"{matrix['rows']}x{matrix['cols']}"
        row["matrix_key"] = f"{matrix['name']} {content}"


def structural_group(row):
    matrix = row["matrix"]
    if match := re.match(r"gen:([^?]+)", matrix["source"]):
        return f"generated: {match[1]}"
    if density(row) >= DENSE_FILL:
        return f"weights-like (over {DENSE_FILL:.0%} nonzeros)"
    if matrix["cv_row"] >= SKEWED_CV:
        return f"skewed rows (cv over {SKEWED_CV})"
    if matrix["mean_row"] < SHORT_ROW:
        return f"short rows (mean under {SHORT_ROW})"
    return f"longer rows (mean {SHORT_ROW} and more)"


def load_groups(path):
    """{matrix name: group} of a CSV file with the columns `name` and `group` (or `kind`)."""
    name = readable(str(path))
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            lines = list(csv.DictReader(file))
    except (OSError, csv.Error) as error:
        raise InputError(f"{name}: {getattr(error, 'strerror', None) or error}") from None
    column = next((c for c in ("group", "kind") if lines and c in lines[0]), None)
    if column is None or "name" not in lines[0]:
        raise InputError(f"{name}: expected CSV with the columns name and group (or kind)")
    named = {}
    for line in lines:
        if line["name"] and line[column]:
            # Folders and endings are not part of a row's name of a matrix.
            named[readable(line["name"].rsplit("/", 1)[-1])] = readable(line[column])
    return named


def fastest(rows):
    """Of the verified rows of a case. `auto` leaves it to the kernel that it picked, where that has a
    row of its own."""
    own = {(row["kernel"], row["reorder"]) for row in rows}
    rivals = [row for row in rows if ((row["pick"] or {}).get("kernel"), row["reorder"]) not in own]
    return min(rivals or rows, key=hot_us)


class Results:
    """Rows with a label, a run and a group; wrong ones and binary A are kept apart from any ranking.
    `kernels` are globs of what the figures draw."""

    def __init__(self, documents, groups=None, kernels=("*",)):
        self.documents = documents
        self.kernels = kernels
        self.rows = []
        for run, document in enumerate(documents):
            name_matrices(document["rows"])
            for row in document["rows"]:
                row["run"] = run
                row["group"] = (groups or {}).get(row["matrix"]["name"]) or structural_group(row)
                self.rows.append(row)
        self.precisions = sorted({row["precision"] for row in self.rows})
        self.ns = sorted({row["n"] for row in self.rows})
        reorders = {row["reorder"] for row in self.rows}
        c_types = {row["c_type"] for row in self.rows}
        # cuSPARSE in fp32 is in every run, to divide by: where the kernels have one precision, only
        # what differs from it is named.
        own = {row["precision"] for row in self.rows if not row["baseline"]} or set(self.precisions)
        for row in self.rows:
            label = row["kernel"]
            if len(own) > 1 or row["precision"] not in own:
                label += " " + row["precision"]
            if len(c_types) > 1:
                label += " -> " + row["c_type"]
            if len(reorders) > 1 and row["reorder"] != "none":
                label += f" [{row['reorder']}]"
            if row["binary"]:
                label += " (binary A)"
            row["label"] = label
        names = sorted({row["kernel"] for row in self.rows})
        for glob in kernels:
            if names and not any(fnmatch.fnmatchcase(name, glob) for name in names):
                raise InputError(
                    f"no kernel is called {readable(glob)}; there are {', '.join(names)}"
                )

    def drawn(self, rows):
        """Those of the kernels that the figures draw; what they are compared with comes from all."""
        return [
            row for row in rows if any(fnmatch.fnmatchcase(row["kernel"], g) for g in self.kernels)
        ]

    def measured(self):
        """Rows with a verified result and a time."""
        return [row for row in self.rows if row["status"] == "ok" and row["hot"]]

    def ranked(self):
        return [row for row in self.measured() if not row["binary"]]

    def by_series(self, rows=None):
        """label -> rows; own kernels first, then baselines, each by name."""
        groups = defaultdict(list)
        for row in self.measured() if rows is None else rows:
            groups[row["label"]].append(row)
        return dict(sorted(groups.items(), key=lambda item: (item[1][0]["baseline"], item[0])))

    def cases(self):
        """case -> its verified rows that read A's values."""
        groups = defaultdict(list)
        for row in self.ranked():
            groups[case_of(row)].append(row)
        return dict(groups)

    def winners(self):
        """case -> the fastest of its rows."""
        return {case: fastest(rows) for case, rows in self.cases().items()}

    def contested(self):
        """case -> rows, without those that hold nothing but baselines while other cases of the same
        problem hold kernels: cuSPARSE in fp32 is measured in every run, to divide by."""
        cases = self.cases()
        with_own = {problem_of(rows[0]) for rows in cases.values() if not rows[0]["baseline"]}
        with_own |= {problem_of(r) for rows in cases.values() for r in rows if not r["baseline"]}
        return {
            case: rows
            for case, rows in cases.items()
            if any(not r["baseline"] for r in rows) or problem_of(rows[0]) not in with_own
        }

    def summary(self):
        """One dictionary per series: counts, geometric means and medians. Best first."""
        winners = {id(fastest(rows)) for rows in self.contested().values()}
        lines = []
        for label, rows in self.by_series(self.rows).items():
            ok = [row for row in rows if row["status"] == "ok" and row["hot"]]
            line = {status: sum(row["status"] == status for row in rows) for status in STATUSES}
            line |= {
                "label": label,
                "baseline": rows[0]["baseline"],
                "wins": sum(id(row) in winners for row in ok),
                "of_bound": geomean(number(row["of_bound"]) for row in ok),
                "preparation_ms": median(preparation_ms(row) for row in ok),
                "break_even": median(number(row["break_even_calls"]) for row in ok),
                "cases": {},
            }
            for name in SPEEDUPS:
                ratios = [row["speedup"][name] for row in ok if row["speedup"][name]]
                line[name], line["cases"][name] = geomean(ratios), len(ratios)
            lines.append(line)
        return sorted(lines, key=lambda ln: (ln["baseline"], -(ln["of_bound"] or 0), ln["label"]))


# ---- the answer --------------------------------------------------------------------------------


def total_us(row, calls):
    return 1e3 * preparation_ms(row) + calls * hot_us(row)


def answer_key(row):
    """The row as answers name it."""
    return (row["run"], row["matrix"]["source"], *case_of(row)[2:], row["kernel"], row["reorder"])


def answers(results):
    """case -> [(calls, row)]: from so many calls on, the row takes the least time in all. As the program
    found them; only cases in which there is something to choose from. Runs made before it wrote answers
    have none, and an answer is left out where `show -k` left out a row that it names."""
    cases = results.cases()
    row_of = {answer_key(row): row for rows in cases.values() for row in rows}
    unverified = {answer_key(row) for row in results.rows} - row_of.keys()
    fields = ("source", "n", "layout", "precision", "c_type")
    found = {}
    for run, document in enumerate(results.documents):
        for answer in document["answers"] or ():
            case = (run, *map(answer.get, fields))
            keys = [(*case, step.get("kernel"), step.get("reorder")) for step in answer["steps"]]
            if wrong := unverified.intersection(keys):
                what = f"an answer names {min(wrong)[-2]}, which has no verified row there"
                raise InputError(f"{document['name']}: damaged: {what}")
            rows = [row_of[key] for key in keys if key in row_of]
            if len(rows) == len(keys) and len(cases[case_of(rows[0])]) > 1:
                calls = (step["from_calls"] for step in answer["steps"])
                found[case_of(rows[0])] = list(zip(calls, rows))
    return found
