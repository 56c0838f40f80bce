#!/usr/bin/env python3
"""The page of docs/tables about kernels that cheat, from tests/faults/cheats.csv and what was found of each.

  docs_tables_cheats.py FILE...    adds verdicts to tests/faults/verdicts.csv, as the tests of planted kernels note them
                                   where SPMMBENCH_VERDICTS names a file: lines of KERNEL,STATUS
"""

import csv
import pathlib
import sys

from command_line import Parser, run
from docs_tables_data import table
from result_data import InputError, readable, write_whole

FAULTS = pathlib.Path(__file__).resolve().parents[1] / "tests" / "faults"
STATUSES = ("ok", "wrong", "skipped", "failed", "timeout")  # of a row of a result


def lines_of(name):
    with open(FAULTS / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def add_verdicts(paths):
    """What a run found replaces what was known of the kernels that it has."""
    found = {}
    for path in paths:
        text = pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), start=1):
            kernel, _, status = line.partition(",")
            if status not in STATUSES:
                raise InputError(f"{readable(path)}:{number}: expected KERNEL,STATUS with {', '.join(STATUSES)}")
            found.setdefault(kernel, set()).add(status)
    verdicts = {line["kernel"]: line["statuses"] for line in lines_of("verdicts.csv")}
    verdicts.update((kernel, " ".join(sorted(statuses))) for kernel, statuses in found.items())
    text = "kernel,statuses\n" + "".join(f"{kernel},{verdicts[kernel]}\n" for kernel in sorted(verdicts))
    write_whole(FAULTS / "verdicts.csv", text.encode())


def cell(line, statuses):
    words = [line["otherwise"] if status == "ok" else status for status in statuses.split()]
    return " or ".join(words)


def cheats():
    verdicts = {line["kernel"]: line["statuses"] for line in lines_of("verdicts.csv")}
    kinds, cpu, gpu = {}, 0, 0
    for line in lines_of("cheats.csv"):
        name = line["kernel"]
        on_cpu = cell(line, verdicts.get(name, ""))
        on_gpu = cell(line, verdicts.get(name.replace("_", "_gpu_", 1), ""))
        if not on_cpu and line["test"]:
            on_cpu = line["otherwise"]
        cpu, gpu = cpu + bool(on_cpu), gpu + bool(on_gpu)
        row = [line["cheat"], on_cpu, on_gpu, line["without"], line["found_by"]]
        kinds.setdefault(line["kind"], []).append(row)
    head = ["cheat", "CPU", "H200", "without it", "found by"]
    parts = "\n".join(f"## {kind}\n\n{table(head, rows)}" for kind, rows in kinds.items())
    return f"""# Kernels that cheat, and what finds each

{cpu} cheats on the CPU and {gpu} on an H200, each a planted kernel (`tests/faults`), plug-in or callable. None of them gets `ok` with a time that it did not earn. [Verification](../verification.md) explains what finds them.

- `wrong` and `failed` are the status of its row, which then has no time. *shown*: the row is right, and has the hidden work among its stages, or a metric and a warning. *gains nothing*: the row is right, and no faster than an honest one.
- *without it*: what the program says if the defence in the last column is taken out, and only the exact test, the bound of an element, the checksum of B and guards of 64 KiB are left. There `ok` shows no preparation. Tried on the CPU, or on a GPU where the kernel is for one alone; empty: not tried, or found all the same.
- An empty cell of a device: no kernel was planted there. Lines that begin with "..." go on with the one above.

{parts}"""


def main():
    parser = Parser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", help="lines of KERNEL,STATUS")
    add_verdicts(parser.parse_args(sys.argv[1:]).files)
    return 0


if __name__ == "__main__":
    run(main)
