#!/usr/bin/env python3
"""Recorded runs in few bytes, for results/.

  slim.py document RUN.json --out F.json         the same document: numbers of five digits, no command of a row
  slim.py medians RUN... --out F.csv             a line for each row that is right: its medians and preparation
  slim.py calls RUN... --out F.csv               a line for each row with times of --calls-curve: these, in us
  slim.py choices RUN... --out F.csv             a line for each row of `auto`: its time and the least times beside it

A RUN is the JSON of `spmmbench run`, or a CSV with its columns. NAME=RUN sets the group of its rows. What a row of
`auto` is compared with are the other kernels of its run, matrix, N, precision and layout (docs/tables/auto.md).
"""

import argparse
import csv
import fnmatch
import io
import json
import pathlib
import sys

from command_line import Parser
from result_data import InputError, checked_document, readable, write_whole

DIGITS = 5  # of a number: a median is known to 1 %
MEDIANS = (
    "group,matrix,rows,cols,nnz,n,precision,c_type,layout,kernel,hot_median_us,cold_median_us,prepare_ms,of_bound,break_even_calls,timer_floor_us"
).split(",")
NUMBERS = MEDIANS[MEDIANS.index("hot_median_us") :]
SPLIT = "split,gpus,way,received_share,transfer_us,product_us,one_gpu_us,one_gpu_of_bound,should_pay,pays".split(",")
NUMBERS += SPLIT[3:8]
CHOICES = (
    "group,matrix,n,precision,layout,kernel,picked,hot_median_us,prepare_ms,fastest,fastest_us,cusparse_us,cublas_us"
).split(",")


CALLS = "group,matrix,nnz,n,precision,kernel,a_memory".split(",")


def rounded(value):
    """Numbers with DIGITS digits, whole ones as they are, wherever they stand in the value."""
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else float(f"{value:.{DIGITS}g}")
    return value


def patterns(text):
    return text.split(",")


def matches(name, wanted):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted)


def slim_document(path, kernels, skipped):
    document = checked_document(path)
    kept = [
        row
        for row in document["rows"]
        if matches(row["kernel"], kernels) and (skipped or row["status"] != "skipped")
    ]
    document["rows"] = [{**row, "command": ""} for row in kept]
    return json.dumps(rounded(document), ensure_ascii=False, separators=(",", ":")).replace(
        '{"matrix"', '\n{"matrix"'
    ) + "\n"


def flat(row, group, context):
    """A row of a document with the columns of a CSV."""
    timing = {f"{kind}_median_us": (row[kind] or {}).get("median_us", "") for kind in ("hot", "cold")}
    stages, of_split = row["stages_ms"], row.get("split") or {}
    return {
        "group": group,
        "matrix": row["matrix"]["name"],
        **{key: row["matrix"][key] for key in ("rows", "cols", "nnz")},
        **{key: row[key] for key in ("n", "precision", "c_type", "layout", "kernel", "status")},
        **{key: row[key] for key in ("of_bound", "break_even_calls")},
        **timing,
        "timer_floor_us": context.get("timer_floor_us", ""),
        "prepare_ms": sum(ms for stage, ms in stages.items() if stage != "load"),
        "picked": (row.get("pick") or {}).get("kernel", ""),
        "calls_us": row.get("calls_us") or {},
        "a_memory": row.get("a_memory", ""),
        **{key: value for key, value in {**of_split, "split": of_split.get("name", "")}.items() if key in SPLIT},
    }


def rows_of(named):
    """The rows of a RUN that were measured and are right."""
    group, _, path = named.rpartition("=")
    if path.endswith(".json"):
        document = checked_document(path)
        rows = [flat(row, group, document["context"]) for row in document["rows"]]
    else:
        with open(path, newline="", encoding="utf-8") as file:
            rows = [{**row, "group": group or row.get("group", "")} for row in csv.DictReader(file)]
    return [row for row in rows if row.get("status", "ok") == "ok"]


def number(value):
    try:
        return f"{float(value):.{DIGITS}g}"
    except (TypeError, ValueError):
        return value  # absent, or "never"


def slim_medians(rows):
    for row in rows:
        yield {
            key: number(row.get(key)) if key in NUMBERS else row.get(key, "")
            for key in (*MEDIANS, *SPLIT)
        }


def slim_calls(rows):
    """The columns, and lines with a column for each number of calls."""
    rows = [row for row in rows if row.get("calls_us")]
    counts = sorted({count for row in rows for count in row["calls_us"]}, key=int)
    lines = [
        {key: row[key] for key in CALLS} | {count: number(us) for count, us in row["calls_us"].items()}
        for row in rows
    ]
    return [*CALLS, *counts], lines


def slim_choices(rows):
    cases = {}
    for row in rows:
        case = tuple(row.get(key, "") for key in ("group", "matrix", "n", "precision", "layout"))
        cases.setdefault(case, []).append(row)
    for case, beside in cases.items():
        others = [row for row in beside if row["kernel"].split("?")[0] != "auto"]
        if not others:
            continue

        def least(pattern):
            return min((float(r["hot_median_us"]) for r in others if matches(r["kernel"], [pattern])), default="")

        fastest = min(others, key=lambda row: float(row["hot_median_us"]))
        for row in beside:
            if row["kernel"].split("?")[0] == "auto":
                yield {
                    **{key: row.get(key, "") for key in CHOICES[:7]},
                    "hot_median_us": number(row["hot_median_us"]),
                    "prepare_ms": number(row["prepare_ms"]),
                    "fastest": fastest["kernel"],
                    "fastest_us": number(fastest["hot_median_us"]),
                    "cusparse_us": number(least("cusparse_*")),
                    "cublas_us": number(least("cublas_dense")),
                }


def table(columns, rows):
    """CSV of the columns that any row has."""
    rows = list(rows)
    used = [key for key in columns if any(row.get(key, "") not in ("", None) for row in rows)]
    out = io.StringIO()
    writer = csv.DictWriter(out, used, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def slim(args):
    """The text of the file that is asked for."""
    if args.what == "document":
        return slim_document(args.runs[0], args.kernels, not args.no_skipped)
    rows = [
        row
        for named in args.runs
        for row in rows_of(named)
        if matches(row["group"], args.groups) and matches(str(row["n"]), args.n)
    ]
    if args.what == "choices":
        return table(CHOICES, slim_choices(rows))
    rows = [row for row in rows if matches(row["kernel"], args.kernels)]
    if args.what == "calls":
        return table(*slim_calls(rows))
    return table((*MEDIANS, *SPLIT), slim_medians(rows))


def main(argv):
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["document", "medians", "calls", "choices"])
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--kernels", type=patterns, default=["*"], help="globs, comma-separated")
    parser.add_argument("--groups", type=patterns, default=["*"], help="globs, comma-separated")
    parser.add_argument("--n", type=patterns, default=["*"], help="columns of B, comma-separated")
    parser.add_argument("--no-skipped", action="store_true", help="of a document: without rows not measured")
    args = parser.parse_args(argv)
    if args.what == "document" and len(args.runs) > 1:
        parser.error("a document is made of one RUN; `spmmbench merge` joins several")
    try:
        write_whole(args.out, slim(args).encode())
    except (InputError, OSError, ValueError, KeyError) as error:
        print(f"slim.py: {readable(str(error))}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
