#!/usr/bin/env python3
"""Runs what a paper's table or figure needs on the matrices at hand; prints published and measured.

  reproduce.py rsh-fig13                          on the bundled matrices, needs no GPU
  reproduce.py rsh-fig16 matrices/ --json fig16.json
  reproduce.py rsh-fig12 matrices/ --plugin ./librode.so --plugin ./libdtc.so
  reproduce.py asyncsparse-bcsr --from results/h200/bcsr-ablation.json --from results/h200/bcsr-fp16-down-n3584.json
  reproduce.py hpckernelbench matrices/           an outside protocol: one table a variant
  reproduce.py --list

Each line is compared with the one in results/reproduce.json: `moved` where it differs by more
than the noise of both and by at least 2 %, of what `inspect` counts by anything that shows. --record keeps it there.

MATRIX: files, folders, @lists or gen:SPEC as for `spmmbench run`. --plugin brings the system of a paper, which
the name of its library or kernel tells (rode, dtc, acc, ...); the fastest of its kernels counts. --from takes recorded runs (for
rsh-fig13 and rsh-fig14: what `spmmbench inspect --json` printed) instead of measuring.

Exit codes: 0 something was measured; 1 bad arguments, unreadable or damaged input; 2 a result was wrong;
4 nothing of the figure could be measured here, such as without a GPU.
"""

import argparse
import json
import math
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import asdict

from command_line import Parser, find_program
from papers import PROTOCOL, TARGETS, hpckernelbench
from papers.common import checked_inspection
from result_data import InputError, load_document, load_example, load_json, readable, write_whole

ROOT = pathlib.Path(__file__).resolve().parents[1]
RECORDED = ROOT / "results" / "reproduce.json"  # an outcome for each target
WRONG, NOTHING_MEASURED = 2, 4  # exit codes, as the program's
MEASURED = (0, 2, 4)  # exit codes of the program after which its document is complete
WIDTH = 100
LEAST_MOVE = 0.02  # as `compare --min-effect`: runs of one build differ by so much
DEVIATIONS = 3  # of the noise of two runs: one line in 370 moves by itself


def naming(plugins):
    return [word for library in plugins for word in ("-k", library)]


def arguments_of(target, matrices, plugins):
    """Of the program, or of the target's script."""
    return [*target.command(matrices), *naming(plugins)]


def measure(inspects, program, arguments, keep=None, script=""):
    """Runs the program, or the script with this Python, keeps its run where wanted; returns (what it read, the
    command, the exit code)."""
    program = shutil.which(program) or program
    command = [sys.executable, str(ROOT / script), *arguments] if script else [program, *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])}
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.json"
        if not inspects:
            command += ["--out" if script else "--json", str(out)]
        shown = shlex.join([script or "spmmbench", *arguments])
        print(shown, file=sys.stderr)
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, env=environment
            )
        except OSError as error:
            text = f"{readable(program)}: {error.strerror} (build first, or give --spmmbench)"
            raise InputError(text) from None
        said = readable(done.stderr.decode(errors="surrogateescape").strip().replace("\n", "; "))
        if done.returncode not in MEASURED or not (inspects or out.exists()):
            raise InputError(said or f"{script or 'spmmbench'} stopped with exit code {done.returncode}")
        if said:
            print(said, file=sys.stderr)
        if inspects:
            out.write_bytes(done.stdout)
        found = read(inspects, [out], script)
        if keep:
            write_whole(keep, out.read_bytes())
        return found, shown, done.returncode


def read(inspects, paths, script):
    if inspects:
        return [
            matrix
            for path in paths
            for matrix in checked_inspection(load_json(path), readable(str(path)))
        ]
    return [load_example(path) if script else load_document(path) for path in paths]


def conditions(documents):
    """Where the measured numbers come from."""
    contexts = [document["context"] for document in documents]

    def each(values):
        return ", ".join(dict.fromkeys(map(str, values)))

    return {
        "device": each(c["device"]["name"] for c in contexts),
        "started_utc": each(c["started_utc"] for c in contexts),
        "git_revision": each(c["git_revision"] for c in contexts),
    }


def outcome(name, target, found, commands):
    lines, differs = target.evaluate(found)
    where = {} if target.inspects else conditions(found)
    if where:
        differs = [f"Published on {target.published_on}; measured on {where['device']}.", *differs]
    return {
        "target": name,
        "title": target.title,
        "source": target.source,
        "published_on": target.published_on,
        "measured": where,
        "noise": noise_of(target, found),
        "commands": commands,
        "lines": [{**asdict(line), "ratio": ratio(line)} for line in lines],
        "differs": [text for text in differs if text],
    }


def noise_of(target, found):
    """Relative standard error of a hot median, the median over the rows; 0 of what is counted. As
    relative_noise of src/timing/quantiles.hpp."""
    if target.inspects:
        return 0.0
    noises = []
    for document in found:
        for row in document["rows"]:
            hot = row["hot"]
            if row["status"] == "ok" and (hot["n"] or 0) >= 4 and hot["q1_us"] and hot["median_us"]:
                spread = (hot["q3_us"] - hot["q1_us"]) / hot["median_us"]
                noises.append(1.2533 * spread / 1.349 / math.sqrt(hot["n"]))
    return statistics.median(noises) if noises else None


def write_outcome(path, outcome):
    write_whole(path, (json.dumps(outcome, indent=1) + "\n").encode("utf-8"))


def recorded_outcome(name):
    return load_json(RECORDED).get(name)


def verdict(line, result, recorded):
    """Whether a line is that of the recorded outcome: same, moved, or why that cannot be said."""
    before = next((one for one in recorded["lines"] if one["what"] == line["what"]), None)
    if line["measured"] is None or before is None or before["measured"] is None:
        return "-"
    if line["cases"] != before["cases"]:
        return f"of {before['cases']} cases"
    devices = [one["measured"].get("device") for one in (result, recorded)]
    if devices[0] != devices[1]:
        return "other device"
    if not result["measured"]:  # counted
        shown = [cell(one["measured"], line["digits"]) for one in (line, before)]
        return "same" if shown[0] == shown[1] else "moved"
    noises = [one.get("noise") or 0 for one in (result, recorded)]
    limit = max(LEAST_MOVE, DEVIATIONS * math.hypot(*noises))
    if min(line["measured"], before["measured"]) <= 0:
        return "same" if line["measured"] == before["measured"] else "moved"
    change = line["measured"] / before["measured"] - 1
    moved = abs(math.log1p(change)) > math.log1p(limit)
    return f"moved {change:+.1%}" if moved else "same"


def ratio(line):
    return line.measured / line.published if line.published and line.measured is not None else None


def reasons(documents):
    """Why rows were not measured, the most frequent first."""
    counts = {}
    for document in documents:
        for row in document["rows"]:
            if row["status"] != "ok":
                text = f"{row['status']}: {row['reason']}"
                counts[text] = counts.get(text, 0) + 1
    return sorted(counts, key=lambda text: -counts[text])


def cell(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"


def cells(line):
    values = [cell(line[name], line["digits"]) for name in ("published", "measured")]
    return [*values, cell(line["ratio"], 2), str(line["cases"])]


def print_markdown(result):
    where = result["measured"]
    print(f"## {result['target']}\n\n{result['title']}. {result['source']}.", end="")
    print(
        f" {where['device']}, {where['started_utc'][:10]}, revision {where['git_revision']}.\n"
        if where
        else "\n"
    )
    print("| | published | measured | ratio | cases |\n|---|---|---|---|---|")
    for line in result["lines"]:
        print(f"| {line['what']} | {' | '.join(cells(line))} |")
    print()
    for text in result["differs"]:
        print(f"- {text}")


def print_table(result, recorded):
    print(f"{result['title']}: {result['source']}")
    where = result["measured"]
    if where:
        print(
            f"measured on {where['device']}, {where['started_utc']}, revision {where['git_revision']}"
        )
    lines = result["lines"]
    width = max(len(line["what"]) for line in lines)

    heads = f"\n{'':{width}} {'published':>10} {'measured':>10} {'ratio':>6} {'cases':>6}"
    print(heads + ("  against the recorded" if recorded else ""))
    for line in lines:
        published, measured, quotient, cases = cells(line)
        text = f"{line['what']:{width}} {published:>10} {measured:>10} {quotient:>6} {cases:>6}"
        print(text + (f"  {verdict(line, result, recorded)}" if recorded else ""))
    print()
    print_differs(result["differs"])


def print_differs(texts):
    print("what differs:")
    for text in texts:
        print(textwrap.fill(text, WIDTH, initial_indent="- ", subsequent_indent="  "))


def parse_arguments(argv):
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "target", nargs="?", choices=[*TARGETS, PROTOCOL], metavar="TARGET", help=", ".join([*TARGETS, PROTOCOL])
    )
    parser.add_argument(
        "matrices", nargs="*", metavar="MATRIX", help="default: the bundled matrices"
    )
    parser.add_argument(
        "--plugin", action="extend", nargs="+", default=[], metavar="LIB", help="another system (docs/peers.md)"
    )
    parser.add_argument("--list", action="store_true", help="print the targets and their sources")
    parser.add_argument("--json", type=pathlib.Path, metavar="OUT", help="write the outcome")
    parser.add_argument("--record", action="store_true", help="keep the outcome in results/reproduce.json")
    parser.add_argument("--markdown", action="store_true", help="print a section of Markdown")
    parser.add_argument(
        "--keep", type=pathlib.Path, metavar="RUN.json", help="keep what was measured, for --from"
    )
    parser.add_argument(
        "--from", dest="recorded", action="append", metavar="RUN.json", help="do not measure"
    )
    parser.add_argument("--spmmbench", default=find_program(), metavar="PATH")
    args = parser.parse_intermixed_args(argv)
    if args.list:
        return args
    if args.target is None:
        parser.error(f"expected a target: {', '.join([*TARGETS, PROTOCOL])}")
    if args.target == PROTOCOL:
        if args.recorded or args.keep or args.record:
            parser.error(f"{PROTOCOL} makes several runs: leave --from, --keep and --record out")
        return args
    if args.recorded and (args.matrices or args.plugin):
        parser.error("--from takes the matrices and kernels of its run: leave MATRIX and --plugin out")
    if args.plugin and not TARGETS[args.target].plugins:
        able = ", ".join(name for name, target in TARGETS.items() if target.plugins)
        parser.error(f"{args.target} compares no systems: --plugin is for {able}, {PROTOCOL}")
    if args.matrices and not TARGETS[args.target].matrices:
        parser.error(f"{args.target} generates its matrices: leave MATRIX out")
    return args


def run_protocol(args):
    """Measures every variant and prints its table."""
    matrices = args.matrices or [str(ROOT / "data")]
    tables, commands, codes = {}, [], []
    for name, variant in hpckernelbench.VARIANTS.items():
        documents = []
        brought = [[*naming(args.plugin), "--no-baselines"]] if args.plugin else []
        for more in [[], *brought]:
            try:
                found, command, code = measure(False, args.spmmbench, [*variant.command(matrices), *more])
            except InputError as error:
                print(f"reproduce.py: {name}: {error}", file=sys.stderr)
                continue
            documents += found
            commands.append(command)
            codes.append(code)
        tables[name] = variant.table(documents)
        print_variant(variant, tables[name], documents, args.markdown)
    print_differs(hpckernelbench.DIFFERS)
    if args.json:
        result = {"target": PROTOCOL, "commands": commands, "tables": tables, "differs": hpckernelbench.DIFFERS}
        write_outcome(args.json, result)
    if not any(tables.values()):
        return NOTHING_MEASURED
    return WRONG if WRONG in codes else 0


def print_variant(variant, table, documents, markdown):
    """Its mean speed-ups; in Markdown every case."""
    print(f"## {variant.title}\n" if markdown else variant.title)
    if not table:
        print(f"nothing was measured: {'; '.join(reasons(documents)[:3])}\n")
        return
    where = conditions(documents)
    print(f"measured on {where['device']}, {where['started_utc']}, revision {where['git_revision']}")
    heads, lines, reference = hpckernelbench.summary(table)
    if markdown:
        print()
        heads = list(table[0])
        lines = [["-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
                  for value in line.values()] for line in table]  # fmt: skip
        print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
        print("".join(f"| {' | '.join(line)} |\n" for line in lines))
        return
    print(f"speed-up over {reference} of the same precision, geometric mean" if reference else "no reference was measured")
    width = max(len(line[0]) for line in [heads, *lines])
    for kernel, precision, *values in [heads, *lines]:
        print(f"{kernel:{width}} {precision:9}" + "".join(f" {text:>8}" for text in values))
    print()


def run_target(args):
    target, code = TARGETS[args.target], 0
    if args.recorded:
        found = read(target.inspects, args.recorded, target.script)
        commands = (
            [shlex.join(map(str, d["context"]["argv"])) for d in found]
            if not target.inspects
            else []
        )
    else:
        arguments = arguments_of(target, args.matrices or [str(ROOT / "data")], args.plugin)
        found, command, code = measure(target.inspects, args.spmmbench, arguments, args.keep, target.script)
        commands = [command]
    result = outcome(args.target, target, found, commands)
    recorded = recorded_outcome(args.target)
    if args.json:
        write_outcome(args.json, result)
    if args.record:
        write_outcome(RECORDED, dict(sorted({**load_json(RECORDED), args.target: result}.items())))
    if args.markdown:
        print_markdown(result)
    else:
        print_table(result, recorded)
    if all(line["measured"] is None for line in result["lines"]):
        why = "" if target.inspects else "; ".join(reasons(found)[:3])
        print(f"reproduce.py: nothing was measured{': ' + why if why else ''}", file=sys.stderr)
        return NOTHING_MEASURED
    return WRONG if code == WRONG else 0


def main(argv=None):
    args = parse_arguments(argv)
    if args.list:
        for name, target in TARGETS.items():
            print(f"{name:18} {target.title}; {target.source}")
        print(f"{PROTOCOL:18} {hpckernelbench.__doc__}")
        return 0
    try:
        return run_protocol(args) if args.target == PROTOCOL else run_target(args)
    except InputError as error:
        print(f"reproduce.py: {error}", file=sys.stderr)
    except OSError as error:
        print(f"reproduce.py: {readable(str(error.filename))}: {error.strerror}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
