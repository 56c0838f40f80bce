#!/usr/bin/env python3
"""The tables of docs/tables, made from results/ (that of cheats: from tests/faults).

  docs_tables.py             writes them
  docs_tables.py --check     exit code 2 where a page differs from what would be written

Means are geometric. Nothing is measured here; results/README.md names the runs.
"""

import contextlib
import csv
import io
import pathlib
import subprocess
import sys
from collections import Counter, defaultdict

from command_line import Parser
from docs_tables_calls import calls
from docs_tables_cheats import cheats
from docs_tables_counters import counters
from docs_tables_data import RESULTS, cases_of, digits, document, rows_of, table, us
from docs_tables_scaling import scaling
from docs_tables_weights import block_sparse, esmm, layers, two_four, weights
from papers import TARGETS
from reproduce import print_markdown, recorded_outcome
from result_data import geomean, write_whole

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "tables"
LEAST_NNZ = 100_000  # smaller general matrices take as long as a launch, whatever the kernel
LATE = 1.25  # a choice that takes so many times the time of the fastest row is counted


# Sparse matrices


GENERAL = ("auto", "auto?tune=1", "rsh", "async_wcsr?order=search", "async_wcsr", "csr_row_split")
CUSPARSE = ("cusparse_coo_alg4", "cusparse_csr_alg2", "cusparse_csr_default")


def general_table(rows, precision, n=None):
    found = defaultdict(lambda: defaultdict(list))
    for (_, columns), case in cases_of(rows, "matrix", "n").items():
        if n and columns != n:
            continue
        comparable = (precision, "fp32") if precision == "tf32" else (precision,)
        default = next(r for r in case if r["kernel"] == "cusparse_csr_default" and r["precision"] == "fp32")
        best = min(us(r) for r in case if r["kernel"].startswith("cusparse") and r["precision"] in comparable)
        for row in case:
            if row["precision"] != precision:
                continue
            of = found[row["kernel"]]
            of["hot"].append(us(default) / us(row))
            of["cold"].append(us(default, "cold") / us(row, "cold"))
            of["best"].append(best / us(row))
            of["bound"].append(float(row["of_bound"]))
    return table(
        ["kernel", "x cuSPARSE default fp32, hot", "cold", f"x best cuSPARSE {precision}", "least", "of the bound", "cases"],
        [
            [
                f"`{kernel}`",
                *(f"{geomean(found[kernel][kind]):.2f}" for kind in ("hot", "cold", "best")),
                f"{min(found[kernel]['best']):.2f}",
                f"{geomean(found[kernel]['bound']):.2f}",
                len(found[kernel]["hot"]),
            ]
            for kernel in (*GENERAL, *CUSPARSE)
            if kernel in found
        ],
    )  # fmt: skip


def pays_at_table(rows):
    """Medians of the calls from which a kernel takes less time in all."""
    calls = defaultdict(list)
    for row in rows:
        if row["precision"] == "fp16" and row["kernel"] in GENERAL:
            value = row["break_even_calls"]
            calls[row["kernel"]].append(float("inf") if value == "never" else float(value or 1))
    lines = []
    for kernel in filter(calls.get, GENERAL):
        ordered = sorted(calls[kernel])
        lines.append([f"`{kernel}`", f"{ordered[len(ordered) // 2]:.0f}"])
    return table(["kernel", "calls, median"], lines)


def general():
    rows = [row for row in rows_of("h200/irregular.csv") if int(row["nnz"]) >= LEAST_NNZ]
    count = len({row["matrix"] for row in rows})
    fp16 = [row for row in rows if row["group"] == "fp16"]
    tf32 = [row for row in rows if row["group"] == "tf32"]
    ns = sorted({int(row["n"]) for row in rows})
    text = f"""# Sparse matrices

{count} graphs, webs, meshes, FEM, circuits, roads and others with at least 100,000 nonzeros, N = {', '.join(map(str, ns[:-1]))} and {ns[-1]}, C in fp32, on an H200, with every cuSPARSE algorithm in the same run (`results/h200/irregular.csv`). Geometric means; "least" is the smallest ratio of a single case; "of the bound" is the share of the [memory bound](../methodology.md#the-memory-bound) that is reached. The coefficients of `auto` were fitted to these matrices, among others; [auto](auto.md) has matrices that no fit saw.

## fp16

{general_table(fp16, "fp16")}
## fp16 by N

"""
    for n in map(str, ns):
        text += f"N = {n}:\n\n{general_table(fp16, 'fp16', n)}\n"
    return text + f"""## tf32

`auto` is `auto?tune=1` here. The best cuSPARSE is that of tf32 and fp32.

{general_table(tf32, "tf32")}
## Calls that pay

From how many calls a kernel takes less time than the row that is cheapest for one call, preparation counted; 1 for that row itself. fp16.

{pays_at_table(fp16)}"""


def wins_table(path):
    """The table, and how many matrices it is over."""
    rows = [row for row in document(path) if row["status"] == "ok" and row["precision"] == "fp16"]
    cases = defaultdict(list)
    for row in rows:
        if row["kernel"] != "auto":
            cases[row["matrix"]["name"]].append(row)
    won = Counter(min(case, key=lambda row: row["hot"]["median_us"])["kernel"] for case in cases.values())
    over = defaultdict(list)
    for row in rows:
        fastest = min(r["hot"]["median_us"] for r in cases[row["matrix"]["name"]])
        over[row["kernel"]].append(row["hot"]["median_us"] / fastest)
    lines = [
        [f"`{kernel}`", won[kernel] if kernel != "auto" else "", len(over[kernel]), f"{geomean(over[kernel]):.2f}"]
        for kernel in sorted(over, key=lambda name: (-won[name], geomean(over[name])))
    ]
    return table(["kernel", "fastest on", "cases", "over the fastest"], lines), len(cases)


def wins():
    h200, count = wins_table("h200/irregular-fp16-n128.json")
    h100, fewer = wins_table("h100/irregular-fp16-n128.json")
    return f"""# Fastest kernels

N = 128, fp16. "Fastest" leaves out `auto`, which runs one of the other kernels ([why](../methodology.md#the-summary-of-a-run)). "Over the fastest" is the mean of the time over that of the fastest kernel, over the cases that the kernel can take.

## H200

{count} matrices: 49 general ones and 30 pruned layers (`results/h200/irregular-fp16-n128.json`).

{h200}
## H100

{fewer} of the general matrices, with fewer kernels (`results/h100/irregular-fp16-n128.json`).

{h100}"""


def narrow():
    rows = rows_of("h200/narrow.csv")
    lines = []
    for kernel in ("jagged_slices", "jagged_slices?order=search"):
        for n in sorted({int(row["n"]) for row in rows}):
            ratios = []
            for case in cases_of([r for r in rows if int(r["n"]) == n], "matrix").values():
                best = min((us(r) for r in case if r["kernel"].startswith("cusparse")), default=None)
                ratios += [best / us(r) for r in case if r["kernel"] == kernel]
            lines.append([f"`{kernel}`", n, f"{geomean(ratios):.2f}", f"{min(ratios):.2f}", len(ratios)])
    return f"""# Few columns

49 general matrices, fp16, on an H200: speed-up over the fastest cuSPARSE algorithm in fp16, SpMV at N = 1 included (`results/h200/narrow.csv`).

{table(["kernel", "N", "mean", "least", "cases"], lines)}"""


def ratios_table(rows, ns, shown, is_base):
    """Speed-ups of kernels over the fastest row that is_base says."""
    lines = []
    for kernel, precision in shown:
        for n in ns:
            ratios = []
            for case in cases_of([row for row in rows if int(row["n"]) == n], "matrix").values():
                base = min(us(row) for row in case if is_base(row))
                ratios += [base / us(row) for row in case if (row["kernel"], row["precision"]) == (kernel, precision)]
            lines.append([f"`{kernel}`", n, f"{geomean(ratios):.2f}", f"{min(ratios):.2f}", len(ratios)])
    return table(["kernel", "N", "mean", "least", "cases"], lines)


def precisions():
    rows = rows_of("h200/precisions.csv")
    fp64 = [row for row in rows if row["group"] == "fp64"]
    fp8 = [row for row in rows if row["group"] == "fp8"]
    of_auto = [("auto", "fp64")]

    def in_fp8(ns, *kernels):
        shown = [(kernel, "fp8_e4m3") for kernel in kernels]
        return ratios_table(fp8, ns, shown, lambda row: (row["kernel"], row["precision"]) == ("auto", "fp16"))

    return f"""# fp64 and fp8

General matrices on an H200 (`results/h200/precisions.csv`).

## fp64

Speed-up over the fastest cuSPARSE algorithm in fp64, SpMV at N = 1 included.

{ratios_table(fp64, (1, 8, 32, 128), of_auto, lambda row: row["kernel"].startswith("cusparse"))}
## fp8_e4m3

Speed-up over `auto` in fp16. Graphs and meshes gather rows of B, which have half as many bytes in fp8.

{in_fp8((8, 32), "auto", "jagged_slices")}
{in_fp8((128, 512), "auto", "async_wcsr", "csr_row_split")}"""


# auto


SETS = {
    "families": "28 of families that no generator makes",
    "families2": "30 of other families",
    "generated": "34 generated",
    "general": "49 general (in the fit)",
    "dlmc": "30 layers of DLMC (in the fit)",
    "weights": "18 large weights",
}
UNSEEN = ("families", "families2", "generated")
CHOICES = ("auto", "auto?tune=1", "auto?calls=1000")


def choice_line(label, rows):
    over = [us(row) / float(row["fastest_us"]) for row in rows]
    vendor = [us(row) / float(row["cusparse_us"]) for row in rows if row["cusparse_us"]]
    return [
        label,
        len(rows),
        f"{geomean(over):.3f}",
        f"{max(over):.2f}",
        sum(ratio > LATE for ratio in over),
        f"{sum(ratio > 1 for ratio in vendor)}, {max(vendor):.2f}" if vendor else "",
    ]


def choice_tables(device):
    head = ["", "cases", "over the fastest", "worst", f"above {LATE} x", "slower than cuSPARSE, worst"]
    rows = rows_of(f"{device}/choices.csv")
    text = ""
    for precision in ("fp16", "fp32", "tf32"):
        of = [row for row in rows if row["precision"] == precision]
        for row in of:
            row["set"] = row["group"].split()[0]
        lines = [
            choice_line(f"unseen, `{kernel}`", chosen)
            for kernel in CHOICES
            if (chosen := [r for r in of if r["kernel"] == kernel and r["set"] in UNSEEN])
        ]
        lines += [
            choice_line(f"{name}, `auto`", chosen)
            for key, name in SETS.items()
            if (chosen := [r for r in of if r["kernel"] == "auto" and r["set"] == key])
        ]
        if lines:
            text += f"{precision}:\n\n{table(head, lines)}\n"
    return text


def over_cusparse(device):
    rows = [
        row
        for row in rows_of(f"{device}/choices.csv")
        if row["kernel"] == "auto" and row["group"] in UNSEEN and row["precision"] == "fp16"
    ]
    ns = sorted({int(row["n"]) for row in rows})
    lines = [["x best cuSPARSE fp16"], ["least"], ["over the fastest"], ["worst"]]
    preparation = ["preparation, products"]  # of an A in the memory of the GPU, as on the H200
    for n in ns:
        of = [row for row in rows if int(row["n"]) == n]
        gains = [float(row["cusparse_us"]) / us(row) for row in of]
        over = [us(row) / float(row["fastest_us"]) for row in of]
        for line, value in zip(lines, (geomean(gains), min(gains), geomean(over), max(over))):
            line.append(f"{value:.3f}" if line[0] == "over the fastest" else f"{value:.2f}")
        preparation.append(digits(geomean([1e3 * float(row["prepare_ms"]) / us(row) for row in of])))
    return table(["N", *map(str, ns)], [*lines, *([preparation] if device == "h200" else [])])


def auto():
    return f"""# auto

`auto` beside the other kernels of its run: "over the fastest" is its time over that of the fastest row that is not `auto`. Unseen matrices are 92 that no coefficient was fitted to, N = 1 to 512. cuSPARSE is CSR default, ALG2 and ALG3, and SpMV at N = 1. Times are medians of 3 to 6 samples; means are geometric. "preparation" has all of it, trials included, from an A in the memory of the GPU.

## H200

{choice_tables("h200")}fp16 by N, `auto` on the unseen matrices:

{over_cusparse("h200")}
## H100

{choice_tables("h100")}fp16 by N, `auto` on the unseen matrices:

{over_cusparse("h100")}"""


# C in 16 bits, graphs beyond the cache


OURS = ("async_wcsr", "async_wcsr?order=search", "csr_row_split")
BEYOND_CACHE = "beyond_cache"  # a group of variants.csv


def c_types():
    rows = [r for r in rows_of("h200/variants.csv") if r["group"] != BEYOND_CACHE and r["kernel"] in OURS]
    lines = []
    for n in sorted({int(row["n"]) for row in rows}):
        best = {}
        for group, matrix in cases_of(rows, "group", "matrix"):
            of = [r for r in rows if (r["group"], r["matrix"], int(r["n"])) == (group, matrix, n)]
            best[group, matrix] = min(of, key=us)
        names = sorted({matrix for _, matrix in best})
        means = {
            group: (geomean([us(best[group, m]) for m in names]), geomean([float(best[group, m]["of_bound"]) for m in names]))
            for group in ("c_fp32", "c_fp16")
        }
        cells = [f"{digits(time)}, {bound:.3f}" for time, bound in means.values()]
        lines.append([n, *cells, f"{means['c_fp16'][0] / means['c_fp32'][0]:.2f}"])
    return f"""# C in 16 bits

The faster of `async_wcsr`, `async_wcsr?order=search` and `csr_row_split` on 49 general matrices, fp16, hot, on an H200 (`results/h200/variants.csv`): us and share of the bound, as means. With C in fp16 the bound is lower.

{table(["N", "C in fp32", "C in fp16", "time"], lines)}"""


def beyond_cache():
    rows = [row for row in rows_of("h200/variants.csv") if row["group"] == BEYOND_CACHE]
    ns = sorted({int(row["n"]) for row in rows})
    lines = []
    for (matrix,), of in cases_of(rows, "matrix").items():
        cells = []
        for n in ns:
            at = [row for row in of if int(row["n"]) == n]
            ours = next(row for row in at if row["kernel"] == "auto")
            vendor = min(us(r) for r in at if r["kernel"].startswith("cusparse_csr") and r["precision"] == "fp16")
            cells.append(f"{digits(us(ours))}, {float(ours['of_bound']):.3f}, {vendor / us(ours):.1f} x")
        lines.append([f"`{matrix}`", *cells])
    return f"""# Graphs beyond the L2 cache

`auto`, fp16, hot, on an H200 (`results/h200/variants.csv`): us, share of the bound, speed-up over the best of cuSPARSE's CSR algorithms in fp16.

{table(["graph", *(f"N = {n}" for n in ns)], lines)}"""


# Training, the papers


def printed_by(script, run):
    command = [sys.executable, ROOT / script, RESULTS / run, "--markdown"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.rstrip()


def gcn():
    return f"""# Training a graph network

Printed by `examples/gcn/report.py results/h200/gcn.json --markdown`: epochs of torch.sparse over those of each backend in the same precision, as geometric means over seven graphs, then the milliseconds of an epoch of each graph. [Results](../results.md#training-a-gcn) says what was run.

{printed_by("examples/gcn/report.py", "h200/gcn.json")}

## Mini-batches

Printed by `examples/gcn/report.py results/h200/gcn-minibatch.json --markdown`: the sparse products of a step, with all that is prepared for its new matrices, and the whole step, as Python launches them. Speed-ups are over torch.sparse.

{printed_by("examples/gcn/report.py", "h200/gcn-minibatch.json")}
"""


def attention():
    """Markdown of results/h200/attention.csv."""
    rows = [
        [
            f"{int(row['tokens']):,}", f"{row['block']} x {row['block']}", row["pattern"],
            f"{float(row['zeros']):.0%}", f"{float(row['block_attention_us']) / 1e3:.2f}", row["tflops"],
            f"{float(row['flex_us']) / float(row['block_attention_us']):.2f}",
            f"{float(row['dense_us']) / float(row['block_attention_us']):.2f}",
        ]
        for row in csv.DictReader((RESULTS / "h200/attention.csv").open())
    ]  # fmt: skip
    header = ["tokens", "blocks", "pattern", "zeros", "ms", "TFLOP/s", "x FlexAttention", "x cuDNN"]
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, ["---"] * len(header), *rows])


def qwen():
    return f"""# Prefill of a language model

Printed by `examples/qwen/report.py results/h200/qwen.json --markdown`: the time to the first token of Qwen2.5-7B by operation, and what each mode gains. [examples/qwen](../../examples/qwen/README.md) says what the modes are; the difference of the logits is from dense weights with the same zeros.

{printed_by("examples/qwen/report.py", "h200/qwen.json")}

## Attention alone

Of `results/h200/attention.csv`, by `examples/qwen/attend.py`: `block_attention` in fp16 with 28 heads, zeros of the causal half, beside FlexAttention with the same blocks and dense causal attention by cuDNN.

{attention()}
"""


def papers():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for target in TARGETS:
            if recorded := recorded_outcome(target):
                print_markdown(recorded)
                print()
    return f"""# The papers' figures and tables

`scripts/reproduce.py TARGET --markdown` prints each of these sections; `results/reproduce.json` has the numbers and the commands. Published values are those that the text of a paper names. A ratio is the measured value over the published one. [Results](../results.md#the-papers-figures-and-tables) has each in one line.

{printed.getvalue().rstrip()}
"""


TABLES = {
    "general": general,
    "auto": auto,
    "calls": calls,
    "fastest": wins,
    "few-columns": narrow,
    "precisions": precisions,
    "block-sparse": block_sparse,
    "scattered-zeros": weights,
    "two-four": two_four,
    "small-layers": layers,
    "esmm": esmm,
    "c-types": c_types,
    "beyond-cache": beyond_cache,
    "counters": counters,
    "scaling": scaling,
    "gcn": gcn,
    "qwen": qwen,
    "papers": papers,
    "cheats": cheats,
}


def pages():
    made = {name: make() for name, make in TABLES.items()}
    titles = "".join(f"- [{text.splitlines()[0][2:]}]({name}.md)\n" for name, text in made.items())
    made["README"] = f"""# Tables

`scripts/docs_tables.py` makes these pages from [results](../../results/README.md) and, for kernels that cheat, from `tests/faults`. A test compares them, so edit the script, not the pages. Times are hot medians unless they say cold, and all results were verified. [Methodology](../methodology.md) says how they were measured.

{titles}"""
    return made


def main(argv):
    parser = Parser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 2 where a page is stale")
    args = parser.parse_args(argv)
    stale = []
    for name, text in pages().items():
        path = PAGES / f"{name}.md"
        if not args.check:
            write_whole(path, text.encode())
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path)
    for path in stale:
        print(f"docs_tables.py: {path.relative_to(ROOT)} is stale: run scripts/docs_tables.py", file=sys.stderr)
    return 2 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
