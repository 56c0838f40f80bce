#!/usr/bin/env python3
"""What the regression gate finds, and what it says by mistake. Prints Markdown tables.

  tests/attack/gate_power.py --build build/host [--runs FOLDER] [--simulate 1000]

1. One run of each side: the recorded run results/h200/irregular-fp16-n128.json against itself, with planted slowdowns.
2. Six runs of each side: the recorded run, its cases moved from run to run as twelve real runs of one build moved them
   (results/h200/repeated-runs.csv), with planted slowdowns, and unchanged in 20 splits.
3. Fresh runs: the documents of FOLDER, runs of one build, or else runs that are measured now on this CPU.
4. A simulation: in how many comparisons of unchanged runs is anything called SLOWER?
"""

import argparse
import collections
import csv
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDED = ROOT / "results" / "h200" / "irregular-fp16-n128.json"
REPEATED = ROOT / "results" / "h200" / "repeated-runs.csv"
FACTORS = (1.05, 1.2, 5)
ONE_CASE_TRIES = 5  # cases differ in noise, so one of them is planted at a time
SPLITS = 20
VERDICT = {0: "no regression", 3: "REGRESSION", 6: "NOT ABLE TO TELL"}
FRESH_CASES = ["gen:uniform?rows=20000&cols=20000&density=0.001", "gen:banded?rows=20000", "-n", "16,32,64", "-k",
               "cpu_csr", "--device", "-1", "--max-seconds", "0.05"]  # fmt: skip
FRESH_RUNS = 14

Plant = collections.namedtuple("Plant", "factor scope holds")  # holds(row): whether it becomes slower


class Gate:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def write(self, name, document):
        """Writes it as a run of its own: compare refuses two documents of one run."""
        context = {**document["context"], "argv": ["spmmbench", "run", name], "started_utc": name}
        document = {**document, "context": context}
        path = self.folder / name
        path.write_text(json.dumps(document, separators=(",", ":")))
        return path

    def compare(self, base, new):
        """The exit code and the document of `compare --json`."""
        out = self.folder / "comparison.json"
        command = [self.program, "compare", ",".join(map(str, base)), ",".join(map(str, new)), "--json", out]
        result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        if result.returncode not in VERDICT:
            sys.exit(f"gate_power: {result.stderr}")
        return result.returncode, json.loads(out.read_text())

    def planted(self, paths, plant):
        """The same runs with slower cases."""
        planted = []
        for path in paths:
            document = json.loads(path.read_text())
            for row in filter(plant.holds, document["rows"]):
                if row["hot"]:
                    scale(row["hot"], plant.factor)
            planted.append(self.write(f"planted-{path.name}", document))
        return planted


def scale(timing, factor):
    for key in ("median_us", "q1_us", "q3_us", "min_us"):
        timing[key] *= factor
    timing["samples_us"] = [us * factor for us in timing["samples_us"]]


def case_of(row):
    return (row["matrix"]["name"], row["n"], row["kernel"], row["precision"])


def plants(rows, rng):
    """Every slowdown of one case (several, one at a time), of one kernel and of all."""
    timed = [case_of(row) for row in rows if row["hot"]]
    kernel = "rsh" if any(case[2] == "rsh" for case in timed) else timed[0][2]
    ones = rng.sample(timed, ONE_CASE_TRIES)
    for factor in FACTORS:
        for one in ones:
            yield Plant(factor, "one case", lambda row, one=one: case_of(row) == one)
        yield Plant(factor, f"one kernel ({kernel})", lambda row: row["kernel"] == kernel)
        yield Plant(factor, "all", lambda row: True)


def count(comparison, what, verdict):
    return sum(one["verdict"] == verdict for one in comparison[what])


def print_power(gate, base, new, rng):
    print("| planted slowdown | scope | verdict | exit code | SLOWER geometric means | SLOWER cases | times |")
    print("|---|---|---|---|---|---|---|")
    outcomes = collections.Counter()
    rows = json.loads(new[0].read_text())["rows"]
    for plant in plants(rows, rng):
        code, comparison = gate.compare(base, gate.planted(new, plant))
        slower = [one for one in comparison["cases"] if one["verdict"] == "SLOWER"]
        false = sum(not plant.holds(one) for one in slower)
        cases = f"{len(slower)}" + (f" ({false} not planted)" if false else "")
        outcomes[plant[:2] + (VERDICT[code], code, count(comparison, "groups", "SLOWER"), cases)] += 1
    for outcome, times in outcomes.items():
        print("| " + " | ".join(map(str, (*outcome, times))) + " |", flush=True)


def print_splits(gate, sets, rng):
    """Unchanged runs, split at random into two sides."""
    codes, slower, seen_groups, seen_cases = collections.Counter(), 0, [], []
    for split in range(SPLITS):
        runs = list(sets[split % len(sets)])
        rng.shuffle(runs)
        code, comparison = gate.compare(runs[::2], runs[1::2])
        codes[VERDICT[code]] += 1
        slower += count(comparison, "cases", "SLOWER") + count(comparison, "groups", "SLOWER") > 0
        seen_groups += [one["smallest_seen"] or math.inf for one in comparison["groups"]]
        seen_cases += [one["times"]["smallest_seen"] or math.inf for one in comparison["cases"] if one["times"]]
    verdicts = ", ".join(f"{times} {verdict}" for verdict, times in codes.items())
    print(f"\nUnchanged, {SPLITS} splits: {slower} with any SLOWER ({verdicts}).")
    for what, seen in (("geometric mean", sorted(seen_groups)), ("case", sorted(seen_cases))):
        median, worst = seen[len(seen) // 2], seen[int(0.95 * (len(seen) - 1))]
        print(f"Smallest slowdown seen of a {what}: median {median:.1%}, 95 % of them below {worst:.1%}.")


def without_cold_times(path):
    document = json.loads(path.read_text())
    for row in document["rows"]:
        row["cold"] = None
    return document


def repeated_runs():
    """By kernel: of every case, the logarithms of its medians in the runs, about their mean."""
    by_kernel = collections.defaultdict(list)
    with REPEATED.open() as file:
        for row in csv.DictReader(file):
            logs = [math.log(float(us)) for name, us in row.items() if name.startswith("run_")]
            mean = sum(logs) / len(logs)
            by_kernel[row["kernel"]].append([value - mean for value in logs])
    return by_kernel


def moved_runs(gate, recorded, name, rng):
    """As many runs of the recorded one as there are repeated runs, each case moved as a case of its kernel was."""
    by_kernel = repeated_runs()
    everything = [moves for cases in by_kernel.values() for moves in cases]
    moves = {case_of(row): rng.choice(by_kernel.get(row["kernel"], everything)) for row in recorded["rows"]}
    paths = []
    for run in range(len(everything[0])):
        document = {**recorded, "rows": []}
        for row in recorded["rows"]:
            row = {**row, "hot": row["hot"] and dict(row["hot"])}
            if row["hot"]:
                scale(row["hot"], math.exp(moves[case_of(row)][run]))
            document["rows"].append(row)
        paths.append(gate.write(f"{name}-{run}.json", document))
    return paths


def measured_now(gate):
    paths = []
    for run in range(FRESH_RUNS):
        paths.append(gate.folder / f"fresh-{run}.json")
        command = [gate.program, "run", *FRESH_CASES, "--quiet", "--json", paths[-1]]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
    return paths


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "host", help="build folder")
    parser.add_argument("--runs", type=pathlib.Path, help="documents of runs of one build; else measured now")
    parser.add_argument("--simulate", type=int, default=1000, help="comparisons of every kind of noise")
    options = parser.parse_args()
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        gate = Gate(options.build / "spmmbench", pathlib.Path(folder))
        recorded = without_cold_times(RECORDED)
        base, new = gate.write("base.json", recorded), gate.write("new.json", recorded)
        print("## One run of each side: the recorded run against itself\n")
        print_power(gate, [base], [new], rng)

        sets = [moved_runs(gate, recorded, f"set-{i}", rng) for i in range(2)]
        half = len(sets[0]) // 2
        print(f"\n## {half} runs of each side: the recorded run, moved as repeated runs were\n")
        print_power(gate, sets[0][::2], sets[0][1::2], rng)
        print_splits(gate, sets, rng)

        runs = sorted(options.runs.glob("*.json")) if options.runs else measured_now(gate)
        where = options.runs.name if options.runs else "measured now on this CPU"
        print(f"\n## Fresh runs ({where}), {len(runs) // 2} of each side\n")
        print_power(gate, runs[::2], runs[1::2], rng)
        print_splits(gate, [runs], rng)

    print("\n## Simulated: comparisons with any false SLOWER\n", flush=True)
    simulation = options.build / "tests" / "spmmbench_gate_simulation"
    return subprocess.run([simulation, str(options.simulate)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
