#!/usr/bin/env python3
"""Attacks the program (kills, damaged files, full disks, bad input) and prints by area how many cases were tried and failed.

  tests/attack/attack.py [--build build/host] [--only kills,journal,...] [--seed 1] [--few]

Minutes on two cores, no GPU needed; `--few` tries a tenth. Each failure is printed with what led to it.
"""

import argparse
import concurrent.futures
import pathlib
import sys
import tempfile
import time

from area import ROOT, Failed
from arguments import BadArguments
from inputs import BadInputs
from journal import JournalDamage
from kills import Kills, Writers
from outputs import OutputFaults
from rights import NoRights
from verdicts import Gate, Planted

AREAS = {
    "kills": Kills, "journal": JournalDamage, "outputs": OutputFaults, "rights": NoRights, "writers": Writers,
    "arguments": BadArguments, "inputs": BadInputs, "planted": Planted, "gate": Gate,
}  # fmt: skip


def attack(area, options, folder):
    """What was tried, in words, and the number of failures."""
    one = area(options, folder)

    def fails(name, case):
        try:
            case()
        except Exception as failure:  # whatever it is, the other cases are tried
            kind = "" if isinstance(failure, Failed) else f"{type(failure).__name__}: "
            print(f"FAILED {name}: {kind}{failure}", file=sys.stderr, flush=True)
            return True
        return False

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        failed = list(pool.map(lambda case: fails(*case), one.cases()))
    return one.tried(len(failed)), sum(failed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda p: pathlib.Path(p).resolve(), default=ROOT / "build" / "host")
    parser.add_argument("--only", default=",".join(AREAS), help="areas, separated by commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--few", action="store_true", help="a tenth of the cases drawn at random")
    options = parser.parse_args()
    unknown = set(options.only.split(",")) - AREAS.keys()
    if unknown:
        parser.error(f"--only: expected some of {', '.join(AREAS)}, got {', '.join(unknown)}")
    print("| area | what is promised | cases tried | failed | s |\n|---|---|---|---|---|")
    all_failed = 0
    for name in options.only.split(","):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            start = time.monotonic()
            tried, failed = attack(AREAS[name], options, pathlib.Path(folder))
        promise = " ".join(AREAS[name].__doc__.split())
        print(f"| {name} | {promise} | {tried} | {failed} | {time.monotonic() - start:.0f} |", flush=True)
        all_failed += failed
    return 1 if all_failed else 0


if __name__ == "__main__":
    sys.exit(main())
