#!/usr/bin/env python3
"""Tiles, fill, bytes, windows and parts of every format on the bundled matrices, under every row
ordering, compared with results/structure.json.

They decide how many bytes a kernel moves, and need no GPU: a change to a format or an ordering that
costs time on the device shows here first. All are deterministic, so any difference is a change.

  scripts/structure_metrics.py [--spmmbench build/host/spmmbench]            compare; exit 1 on a change
  scripts/structure_metrics.py [--spmmbench build/host/spmmbench] --record   write the recorded values anew
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys

from command_line import Parser, find_program, numbered

ROOT = pathlib.Path(__file__).resolve().parents[1]
RECORD = ROOT / "results" / "structure.json"
TOLERANCE = 1e-5  # relative, of what is not a whole number; recorded with six digits
RATIOS = ("index_over_coo", "fp16_over_coo")  # follow from the bytes


def inspect(program):
    """What `spmmbench inspect` says of data/ under every ordering."""
    listed = subprocess.run([program, "list", "reorderings", "--json"], check=True, capture_output=True)
    orders = [entry["name"] for entry in json.loads(listed.stdout)["reorderings"]]
    command = [program, "inspect", "data", "--json", "--reorder", ",".join(orders)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout)


def rounded(values):
    return {
        key: float(f"{value:.6g}") if isinstance(value, float) else value
        for key, value in values.items()
        if key not in RATIOS
    }


def metrics(inspected):
    """{"matrix, order, format": {metric: value}}; the order's own metrics under "(rows)"."""
    found = {}
    for matrix in inspected:
        sizes = {key: matrix[key] for key in ("sha256", "rows", "cols", "nnz")}
        lengths = rounded(matrix["structure"].pop("row_length"))
        found[f"{matrix['name']}, (matrix)"] = {**sizes, **rounded(matrix["structure"]), **lengths}
        for order in matrix["reorderings"]:
            prefix = f"{matrix['name']}, {order['name']}"
            found[f"{prefix}, (rows)"] = rounded({"adjacent_cost": order["adjacent_cost"]})
            for name, values in order["formats"].items():
                found[f"{prefix}, {name}"] = rounded(values)
    return found


def equal(old, new):
    if isinstance(old, float) and isinstance(new, (int, float)):
        return math.isclose(old, new, rel_tol=TOLERANCE)
    return old == new


def differences(old, new):
    """A line per metric that changed or went away, and one per case that is not recorded yet."""
    lines, unrecorded = [], []
    for case in {**old, **new}:
        if case not in old:
            unrecorded.append(f"{case}: not recorded")
            continue
        if case not in new:
            lines.append(f"{case}: no longer there")
            continue
        for key in {**old[case], **new[case]}:
            before, after = old[case].get(key), new[case].get(key)
            if not equal(before, after):
                lines.append(f"{case}: {key} was {before}, is {after}")
    return lines, unrecorded


def write(path, found):
    """One line per matrix, ordering and format, so that a change is a line in the diff."""
    lines = (f"{json.dumps(case)}: {json.dumps(values)}" for case, values in found.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main():
    parser = Parser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spmmbench", default=find_program(), metavar="PATH")
    parser.add_argument("--record", action="store_true", help="write the recorded values anew")
    parser.add_argument("--file", type=pathlib.Path, default=RECORD, help=f"instead of {RECORD.name}")
    options = parser.parse_args()
    try:
        found = metrics(inspect(options.spmmbench))
    except OSError as error:
        sys.exit(f"{options.spmmbench}: {error.strerror} (build first, or give --spmmbench)")
    if options.record:
        write(options.file, found)
        return 0
    if not options.file.exists():
        sys.exit(f"{options.file}: not recorded yet; --record writes it")
    lines, unrecorded = differences(json.loads(options.file.read_text()), found)
    for line in unrecorded + lines:
        print(line)
    if lines:
        print(f"{numbered(len(lines), 'difference')}. If meant: scripts/structure_metrics.py --record")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
