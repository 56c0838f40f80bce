#!/usr/bin/env python3
"""The tables of docs/tables, made from results/.

  docs_tables.py             writes them
  docs_tables.py --check     exit code 2 where a page differs from what would be written

Means are geometric. Nothing is measured here; results/README.md names the runs.
"""

import contextlib
import csv
import io
import json
import pathlib
import subprocess
import sys
from collections import Counter, defaultdict

from command_line import Parser
from papers import TARGETS
from reproduce import print_markdown, recorded_outcome
from result_data import geomean, write_whole

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
PAGES = ROOT / "docs" / "tables"
LEAST_NNZ = 100_000  # smaller general matrices take as long as a launch, whatever the kernel
LATE = 1.25  # a choice that takes so many times the time of the fastest row is counted


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


# Sparse matrices


GENERAL = ("auto", "rsh", "async_wcsr?order=search", "async_wcsr", "csr_row_split")
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
    for kernel in GENERAL:
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


def wins():
    rows = document("h200/irregular-fp16-n128.json")
    cases = defaultdict(list)
    for row in rows:
        if row["status"] == "ok" and row["precision"] == "fp16" and row["kernel"] != "auto":
            cases[row["matrix"]["name"]].append(row)
    won = Counter(min(case, key=lambda row: row["hot"]["median_us"])["kernel"] for case in cases.values())
    over = defaultdict(list)
    for row in rows:
        if row["status"] == "ok" and row["precision"] == "fp16":
            fastest = min(r["hot"]["median_us"] for r in cases[row["matrix"]["name"]])
            over[row["kernel"]].append(row["hot"]["median_us"] / fastest)
    lines = [
        [f"`{kernel}`", won[kernel] if kernel != "auto" else "", len(over[kernel]), f"{geomean(over[kernel]):.2f}"]
        for kernel in sorted(over, key=lambda name: (-won[name], geomean(over[name])))
    ]
    return f"""# Fastest kernels

{len(cases)} matrices (49 general ones and 30 pruned layers), N = 128, fp16, on an H200 (`results/h200/irregular-fp16-n128.json`). "Fastest" leaves out `auto`, which runs one of the other kernels ([why](../methodology.md#the-summary-of-a-run)). "Over the fastest" is the mean of the time over that of the fastest kernel, over the cases that the kernel can take.

{table(["kernel", "fastest on", "cases", "over the fastest"], lines)}"""


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
        digits(geomean([float(row["prepare_ms"]) for row in rows])),
    ]


def choice_tables(device):
    head = ["", "cases", "over the fastest", "worst", f"above {LATE} x", "slower than cuSPARSE, worst", "preparation, ms"]
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
    for n in ns:
        of = [row for row in rows if int(row["n"]) == n]
        gains = [float(row["cusparse_us"]) / us(row) for row in of]
        over = [us(row) / float(row["fastest_us"]) for row in of]
        for line, value in zip(lines, (geomean(gains), min(gains), geomean(over), max(over))):
            line.append(f"{value:.3f}" if line[0] == "over the fastest" else f"{value:.2f}")
    return table(["N", *map(str, ns)], lines)


def auto():
    return f"""# auto

`auto` beside the other kernels of its run: "over the fastest" is its time over that of the fastest row that is not `auto`. Unseen matrices are 92 that no coefficient was fitted to, N = 1 to 512. cuSPARSE is CSR default, ALG2 and ALG3, and SpMV at N = 1. Times are medians of 3 to 6 samples; means are geometric; "preparation" has all of it, trials included.

## H200

{choice_tables("h200")}fp16 by N, `auto` on the unseen matrices:

{over_cusparse("h200")}
## H100

{choice_tables("h100")}fp16 by N, `auto` on the unseen matrices:

{over_cusparse("h100")}"""


# Weights


def block_sparse():
    rows = [row for row in document("h200/bcsr-fp16-down-n3584.json") if row["status"] == "ok"]
    times, dense = defaultdict(dict), {}
    for row in rows:
        spec = row["matrix"]["name"]
        block = next(part[6:] for part in spec.split("?")[1].split("&") if part.startswith("block="))
        zeros = zeros_of(spec)
        times[row["kernel"].split("?")[0], block][zeros] = row["hot"]["median_us"]
        if zeros == 0 and row["kernel"] == "cublas_dense":
            dense[block] = row["hot"]["median_us"]
    levels = sorted({zeros for of in times.values() for zeros in of if zeros})
    unpruned = geomean(list(dense.values()))
    lines = []
    for (kernel, block), of in sorted(times.items()):
        if kernel != "cublas_dense":
            pairs = [(of[z], unpruned / of[z], times["cublas_dense", block][z] / of[z]) for z in levels]
            lines.append([f"`{kernel}`, {block} x {block}", *(f"{digits(t)} ({a:.2f}, {b:.2f})" for t, a, b in pairs)])
    return f"""# Block-sparse weights

A = 3584 x 18944, N = 3584, fp16, on an H200 (`results/h200/bcsr-fp16-down-n3584.json`): us, and in parentheses the speed-up over cuBLAS on the unpruned matrix, and on the pruned one with its zeros stored. The second is smaller, because zeros save power and cuBLAS runs faster on them.

{table(["kernel, blocks", *(f"{percent(z)} zeros" for z in levels)], lines)}"""


SHAPES = {
    "llama3-70b/ffn_gate": "28672 x 8192",
    "llama3-70b/ffn_down": "8192 x 28672",
    "qwen2.5-7b/ffn_gate": "18944 x 3584",
    "qwen2.5-7b/ffn_down": "3584 x 18944",
    "llama3-70b/attn_q": "8192 x 8192",
    "qwen2.5-7b/attn_q": "3584 x 3584",
}
FEW = 64  # columns up to which the run of decoding measured


def scattered_table(rows, kernel, kind, shapes):
    ns = sorted({int(row["n"]) for row in rows if row["kernel"] == kernel})
    lines = []
    for layer in shapes:
        of = [row for row in rows if row["matrix"].split("?")[0] == layer]
        for zeros in sorted({zeros_of(row["matrix"]) for row in of}):
            cells = []
            for n in ns:
                at = {r["kernel"]: r for r in of if int(r["n"]) == n and zeros_of(r["matrix"]) == zeros}
                if kernel not in at or "cublas_dense" not in at:
                    cells.append("")
                    continue
                floor = float(at[kernel]["timer_floor_us"] or 0) if kind == "cold" else 0
                ours, dense = (us(at[name], kind) - floor for name in (kernel, "cublas_dense"))
                cells.append(f"{digits(ours)} ({dense / ours:.2f})")
            lines.append([SHAPES[layer], percent(zeros), *cells])
    return table(["A", "zeros", *(f"N = {n}" for n in ns)], lines)


def weights():
    rows = rows_of("h200/weights.csv")
    for row in rows:
        row["matrix"] = row["matrix"].removeprefix("gen:")
    layers = list(SHAPES)[:4]
    few = [row for row in rows if row["group"] == "decode"]
    wide = [row for row in rows if row["group"] == "scattered" and int(row["n"]) > FEW]
    text = """# Weights with scattered zeros

Weights of Llama 3 70B and Qwen2.5-7B with random zeros, fp16, column-major, C in fp32, on an H200 (`results/h200/weights.csv`): us, and in parentheses the speed-up over cuBLAS in the same run. Hot is for launches that follow one another, where part of the weights may stay in the L2 cache. Cold is for decoding, where each launch reads its weights from memory; the time of two events is subtracted.

"""
    for kernel in ("gap_slices", "gather_mma", "bitmap_dense"):
        of = [r for r in few if r["kernel"] in (kernel, "cublas_dense") and (int(r["n"]) == 1) >= (kernel == "gap_slices")]
        for kind in ("hot", "cold"):
            text += f"## {kernel}, {kind}\n\n{scattered_table(of, kernel, kind, layers)}\n"
    return text + f"""## bitmap_dense, more columns, hot

{scattered_table([r for r in wide if r["kernel"] in ("bitmap_dense", "cublas_dense")], "bitmap_dense", "hot", layers)}"""


def two_four():
    rows = [row for row in rows_of("h200/weights.csv") if row["group"] == "2:4"]
    ns = sorted({int(row["n"]) for row in rows if row["kernel"] == "two_four"})
    lines = []
    for layer, shape in SHAPES.items():
        at = {(r["kernel"], int(r["n"])): us(r) for r in rows if r["matrix"].split("?")[0].removeprefix("gen:") == layer}
        if any(kernel == "two_four" for kernel, _ in at):
            cells = [(at.get(("two_four", n)), at.get(("cublas_dense", n))) for n in ns]
            lines.append([shape, *(f"{digits(t)} ({d / t:.2f})" if t and d else "" for t, d in cells)])
    return f"""# Weights in 2:4

`two_four`, fp16, column-major, C in fp32, hot, on an H200 (group `2:4` of `results/h200/weights.csv`): us, and in parentheses the speed-up over cuBLAS in the same run.

{table(["A", *(f"N = {n}" for n in ns)], lines)}"""


def layers():
    rows = rows_of("h200/layers.csv")
    ns = sorted({int(row["n"]) for row in rows if row["group"] == "dlmc"})
    text = ""
    for group, name in (("dlmc", "30 layers of DLMC, row-major"), ("layers", "Generated layers, column-major")):
        of = [row for row in rows if row["group"] == group]
        lines, every = [], defaultdict(list)
        for shape, case in sorted(cases_of(of, "rows", "cols").items(), key=lambda item: tuple(map(int, item[0]))):
            cells = []
            for n in ns:
                at = cases_of([row for row in case if int(row["n"]) == n], "matrix").values()
                pairs = [{row["kernel"]: us(row) for row in both} for both in at]
                pairs = [(p["dense_cluster"], p["cublas_dense"]) for p in pairs if len(p) == 2]
                every[n] += [dense / ours for ours, dense in pairs]
                cells.append(
                    f"{digits(geomean([p[0] for p in pairs]))} ({geomean([p[1] / p[0] for p in pairs]):.2f})"
                    if pairs
                    else ""
                )
            if any(cells):
                lines.append([" x ".join(shape), *cells])
        lines.append(["all, speed-up", *(f"{geomean(every[n]):.2f}" if every[n] else "" for n in ns)])
        text += f"## {name}\n\n{table(['A', *(f'N = {n}' for n in ns)], lines)}\n"
    return f"""# Small layers

`dense_cluster`, fp16, C in fp32, hot, on an H200 (`results/h200/layers.csv`), with a build that cuts boxes of B at column N: us, and in parentheses the speed-up over cuBLAS in the same run; means of the layers of a shape.

{text.rstrip()}
"""


def esmm():
    rows = [row for row in rows_of("h200/esmm_density.csv") if row["status"] == "ok"]
    lines = [
        [
            row["size"],
            percent(float(row["density"])),
            *(digits(float(row[f"{name}_us"])) for name in ("esmm", "esmm_skip", "cublas_fp32")),
            f"{float(row['cublas_fp32_us']) / float(row['esmm_us']):.2f}",
        ]
        for row in rows
    ]
    return f"""# ESMM

Two sparse operands of size³ in fp32, patterns in both, hot, on an H200 (`results/h200/esmm_density.csv`), us:

{table(["size", "bits set in each pattern", "`esmm`", "`esmm_skip`", "cuBLAS fp32", "`esmm` over cuBLAS"], lines)}"""


# C in 16 bits, graphs beyond the cache


OURS = ("async_wcsr", "async_wcsr?order=search", "csr_row_split")


def c_types():
    rows = [r for r in rows_of("h200/c-types.csv") if r["kernel"] in OURS]
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

The faster of `async_wcsr`, `async_wcsr?order=search` and `csr_row_split` on 49 general matrices, fp16, hot, on an H200 (`results/h200/c-types.csv`): us and share of the bound, as means. With C in fp16 the bound is lower.

{table(["N", "C in fp32", "C in fp16", "time"], lines)}"""


def beyond_cache():
    rows = rows_of("h200/beyond-cache.csv")
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

`auto`, fp16, hot, on an H200 (`results/h200/beyond-cache.csv`): us, share of the bound, speed-up over the best of cuSPARSE's CSR algorithms in fp16.

{table(["graph", *(f"N = {n}" for n in ns)], lines)}"""


# Training, the papers


def gcn():
    command = [sys.executable, ROOT / "examples/gcn/report.py", RESULTS / "h200/gcn.json", "--markdown"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return f"""# Training a graph network

Printed by `examples/gcn/report.py results/h200/gcn.json --markdown`: epochs of torch.sparse over those of each backend in the same precision, as geometric means over seven graphs, then the milliseconds of an epoch of each graph. [Results](../results.md#training-a-gcn) says what was run.

{printed.rstrip()}
"""


def qwen():
    command = [sys.executable, ROOT / "examples/qwen/report.py", RESULTS / "h200/qwen.json", "--markdown"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return f"""# Prefill of a language model

Printed by `examples/qwen/report.py results/h200/qwen.json --markdown`: the time to the first token of Qwen2.5-7B by operation, and what each mode gains. [examples/qwen](../../examples/qwen/README.md) says what the modes are; the difference of the logits is from dense weights with the same zeros.

{printed.rstrip()}
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
    "fastest": wins,
    "few-columns": narrow,
    "block-sparse": block_sparse,
    "scattered-zeros": weights,
    "two-four": two_four,
    "small-layers": layers,
    "esmm": esmm,
    "c-types": c_types,
    "beyond-cache": beyond_cache,
    "gcn": gcn,
    "qwen": qwen,
    "papers": papers,
}


def pages():
    made = {name: make() for name, make in TABLES.items()}
    titles = "".join(f"- [{text.splitlines()[0][2:]}]({name}.md)\n" for name, text in made.items())
    made["README"] = f"""# Tables

Made by `scripts/docs_tables.py` from [results](../../results/README.md); a test compares. Edit the script, not these pages. Times are hot medians unless they say cold; all results were verified. [methodology](../methodology.md) says how they were measured.

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
