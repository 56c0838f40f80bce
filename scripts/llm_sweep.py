#!/usr/bin/env python3
"""The linear layers of language models with sparse and with dense (cuBLAS) weights: each weight, one
layer, all layers.

  llm_sweep.py --out prefill.json                          prefill of Qwen2.5-7B, block-sparse weights
  llm_sweep.py --out prefill.json --tokens 1024,4096 --sparsity 0.9 --block 64 --b-layout col
  llm_sweep.py --mode decode --out decode.json --plot decode.svg
  llm_sweep.py --mode decode --out d.json --model llama3-70b --zeros magnitude,2:4 --tokens 1,8

Measures with `spmmbench run --resume`, so that an interrupted sweep continues where it stopped. What is
printed are the rows of the precision, type of C, layout and kernels asked for; --no-run without --kernel
takes all kernels. Times are medians of verified products alone: no attention scores, norms or activation
functions. Prefill is timed back to back. Decode reads every weight once per step, so its time is the cold
one, with the L2 cache flushed before each launch, less the time of the two events around it
(`timer_floor_us`).

The sparse side of a weight is the fastest of the sparse kernels (--kernel); by default those of
async_bcsr, bitmap*, gap_slices, gather_mma and two_four that this build has. NVIDIA's own of 2:4 zeros:
--zeros 2:4 --kernel cusparselt --c-type fp16.
"""

import argparse
import dataclasses
import fnmatch
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import sys

from command_line import Parser, find_program, require
from result_data import InputError, hot_us, load_document

# Weights of one layer that share a shape are measured once: (generator, how many of them).
FFN = (("ffn_gate", 2), ("ffn_down", 1))  # gate and up; down
ATTENTION = (("attn_q", 2), ("attn_k", 2))  # q and o; k and v
LAYERS = {"qwen2.5-7b": 28, "llama3-70b": 80}
DENSE = ("cublas_dense", "cublaslt_dense")  # the latter in fp8, which the former does not offer
SPARSE = ("async_bcsr", "bitmap*", "gap_slices", "gather_mma", "two_four")
PLUGIN = re.compile(r"(?:.*/)?(?:lib)?([^/]+)\.so[^/:]*:?(.*)")  # FILE.so:NAME is called FILE:NAME
ENDED_EARLY = (1, 5, 130)  # exit codes: bad arguments, rows of another run in --out, Ctrl-C
DEFAULTS = {  # mode -> what is swept unless asked otherwise
    "prefill": {
        "model": ["qwen2.5-7b"],
        "zeros": ["block"],
        "tokens": [2**i for i in range(10, 17)],
        "sparsity": [0.5, 0.6, 0.7, 0.8, 0.9, 0.95],
        "b_layout": "row",
    },
    "decode": {
        "model": list(LAYERS),
        "zeros": ["random", "magnitude", "block"],
        "tokens": [1, 2, 4, 8, 16, 32, 64],
        "sparsity": [0.5, 0.6, 0.7, 0.8, 0.9],
        "b_layout": "col",  # token by token
    },
}


def words(text):
    return text.split(",")


def numbers(text):
    return [listed(part, float, "numbers") for part in text.split(",")]


def whole_numbers(text):
    return [listed(part, int, "whole numbers") for part in text.split(",")]


def listed(part, kind, what):
    try:
        return kind(part)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{part}': expected {what}, with commas between") from None


@dataclasses.dataclass(frozen=True)
class Zeros:
    """Where a model's zeros are: anywhere, in 2:4 groups, or in blocks of one size."""

    model: str
    kind: str
    block: int = 0

    def source(self, weight, sparsity):
        if self.kind == "block":
            return f"gen:{self.model}/{weight}?block={self.block}&sparsity={sparsity:g}"
        if self.kind == "2:4":
            return f"gen:{self.model}/{weight}?zeros=2:4"
        return f"gen:{self.model}/{weight}?zeros={self.kind}&sparsity={sparsity:g}"

    def sparsities(self, asked):
        return [0.5] if self.kind == "2:4" else asked

    def label(self):
        kind = f"{self.block} x {self.block} blocks" if self.kind == "block" else self.kind
        return f"{self.model}, zeros: {kind}"


def patterns(args):
    return [
        Zeros(model, kind, block)
        for model in args.model
        for kind in args.zeros
        for block in (args.block if kind == "block" else [0])
    ]


def run(command, **options):
    try:
        return subprocess.run(command, check=False, **options)
    except OSError as error:
        raise InputError(
            f"{command[0]}: {error.strerror} (build first, or give --spmmbench)"
        ) from None


def sparse_kernels(binary):
    """The default kernels that this build has."""
    listed = run([binary, "list", "kernels", "--json"], capture_output=True, text=True)
    if listed.returncode != 0:
        raise InputError(f"{binary} list: {listed.stderr.strip()}")
    names = [kernel["name"] for kernel in json.loads(listed.stdout)["kernels"]]
    found = [glob for glob in SPARSE if any(fnmatch.fnmatch(name, glob) for name in names)]
    if not found:
        raise InputError(f"{binary} has none of {', '.join(SPARSE)}: say which with --kernel")
    return found


def sources(args):
    return [
        zeros.source(weight, sparsity)
        for zeros in patterns(args)
        for sparsity in zeros.sparsities(args.sparsity)
        for weight, _ in FFN + ATTENTION
    ]


def measure(args):
    binary = shutil.which(args.spmmbench) or args.spmmbench
    args.kernel = args.kernel or ",".join(sparse_kernels(binary))
    command = [binary, "run", *sources(args), "-n", ",".join(map(str, args.tokens))]
    dense = DENSE[args.precision == "fp8_e4m3"]
    command += ["-k", f"{args.kernel},{dense}", "--no-baselines", "--resume"]
    command += ["--precision", args.precision, "--c-type", args.c_type]
    command += ["--b-layout", args.b_layout, "--json", str(args.out), "--quiet"]
    command += ["--max-seconds", f"{args.max_seconds:g}"]
    return run(command).returncode


def is_of(row, spec):
    """Whether the row is of a kernel that --kernel names so."""
    glob, _, options = spec.partition("?")
    if plugin := PLUGIN.fullmatch(glob):
        glob = f"{plugin[1]}:{plugin[2] or '*'}"
    name, _, given = row["kernel"].partition("?")
    return fnmatch.fnmatchcase(name, glob) and sorted(given.split("&")) == sorted(options.split("&"))


def without_others(document, precision, c_type, layout, kernels):
    """The document without rows of other precisions, types of C, layouts and kernels; no kernels: all."""
    rows = [
        row
        for row in document["rows"]
        if (row["precision"], row["c_type"]) == (precision, c_type)
        and (row["layout"] == layout or row["n"] == 1)  # one column is the same in both
        and (not kernels or any(is_of(row, spec) for spec in kernels))
    ]
    return {**document, "rows": rows}


def asked_for(args, document):
    """The document without rows that the arguments do not ask for."""
    kernels = [*DENSE, *args.kernel.split(",")] if args.kernel else []
    found = without_others(document, args.precision, args.c_type, args.b_layout, kernels)
    rows = found["rows"]
    if document["rows"] and not rows:
        raise InputError(
            f"{args.out}: no row has --precision {args.precision}, --c-type {args.c_type}, "
            f"--b-layout {args.b_layout} and a kernel asked for"
        )
    return found


def cold_us(row, floor):
    """Microseconds of a launch that finds its weights in memory, without the events around it."""
    return row["cold"]["median_us"] - floor if row["cold"] else None


def times(document, mode):
    """(source, tokens) -> {"dense" or "sparse": microseconds} of verified rows, the fastest of each."""
    floor = document["context"].get("timer_floor_us") or 0
    out = {}
    for row in document["rows"]:
        us = cold_us(row, floor) if mode == "decode" else hot_us(row)
        if row["status"] == "ok" and us:
            side = "dense" if row["kernel"] in DENSE else "sparse"
            case = out.setdefault((row["matrix"]["source"], row["n"]), {})
            case[side] = min(us, case.get(side, us))
    return out


def total(measured, weights, zeros, sparsity, tokens, side):
    """Microseconds of these weights of one layer; None when one is missing."""
    parts = [
        (measured.get((zeros.source(weight, sparsity), tokens), {}).get(side), count)
        for weight, count in weights
    ]
    return None if any(us is None for us, _ in parts) else sum(us * count for us, count in parts)


def ratio_of(measured, weights, zeros, sparsity, tokens):
    dense, sparse = (
        total(measured, weights, zeros, sparsity, tokens, side) for side in ("dense", "sparse")
    )
    return dense / sparse if dense and sparse else None


def cell(value, width, digits):
    return f"{value:{width}.{digits}f}" if value is not None else "-".rjust(width)


def print_prefill(args, measured):
    for model in args.model:
        layers = LAYERS[model]
        head = f"{'block':>5} {'zeros':>5} {'tokens':>6} | {'FFN dense':>10} {'sparse':>9} {'x':>5} |"
        print(f"{head} {f'{layers} layers dense':>15} {'sparse':>9} {'x':>5}")
        print(f"{'':>5} {'':>5} {'':>6} | {'us':>10} {'us':>9} {'':>5} | {'ms':>15} {'ms':>9}")
        for zeros in (zeros for zeros in patterns(args) if zeros.model == model):
            for sparsity in zeros.sparsities(args.sparsity):
                for tokens in args.tokens:
                    line = f"{zeros.block or zeros.kind:>5} {100 * sparsity:>4.0f}% {tokens:>6} |"
                    for weights, scale, widths in (
                        (FFN, 1, (10, 9)),
                        (FFN + ATTENTION, layers, (15, 9)),
                    ):
                        dense, sparse = (
                            total(measured, weights, zeros, sparsity, tokens, side)
                            for side in ("dense", "sparse")
                        )
                        unit = scale / 1000 if scale > 1 else 1
                        digits = 2 if scale > 1 else 1
                        line += f" {cell(dense and dense * unit, widths[0], digits)}"
                        line += f" {cell(sparse and sparse * unit, widths[1], digits)}"
                        ratio = ratio_of(measured, weights, zeros, sparsity, tokens)
                        line += f" {cell(ratio, 5, 2)} |"
                    print(line.rstrip(" |"))


def print_rows(title, args, rows, digits):
    """One row per entry of `rows`, (label, one value per N); nothing when all are missing."""
    if all(value is None for _, values in rows for value in values):
        return
    print(f"  {title:<26}" + "".join(f"{f'N = {n}':>9}" for n in args.tokens))
    for label, values in rows:
        print(f"  {label:>26}" + "".join(cell(value, 9, digits) for value in values))


def print_decode(args, measured):
    for zeros in patterns(args):
        sparsities = zeros.sparsities(args.sparsity)
        print(f"{zeros.label()}, weights from memory")
        for weight, count in FFN + ATTENTION:
            rows = [
                (
                    f"{100 * sparsity:.0f} %",
                    [ratio_of(measured, ((weight, 1),), zeros, sparsity, n) for n in args.tokens],
                )
                for sparsity in sparsities
            ]
            print_rows(f"{count} x {weight}: dense / sparse", args, rows, 2)
        whole, layers = FFN + ATTENTION, LAYERS[zeros.model]
        rows = [
            (
                f"{100 * sparsity:.0f} %",
                [ratio_of(measured, whole, zeros, sparsity, n) for n in args.tokens],
            )
            for sparsity in sparsities
        ]
        print_rows("one layer: dense / sparse", args, rows, 2)
        rows = []
        for side in ("dense", "sparse"):
            for sparsity in sparsities[:1] if side == "dense" else sparsities:
                label = side if side == "dense" else f"sparse, {100 * sparsity:.0f} %"
                sums = [total(measured, whole, zeros, sparsity, n, side) for n in args.tokens]
                rows.append((label, [us and us * layers / 1000 for us in sums]))
        print_rows(f"{layers} layers, ms", args, rows, 2)
        print()


def draw(args, measured):
    """Dense over sparse time of a layer by sparsity and N, one panel per pattern; a line at 1."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import TwoSlopeNorm

    grids = {}
    for zeros in patterns(args):
        grid = [
            [ratio_of(measured, FFN + ATTENTION, zeros, sparsity, n) for n in args.tokens]
            for sparsity in zeros.sparsities(args.sparsity)
        ]
        if any(value is not None for line in grid for value in line):
            grids[zeros] = [[value or float("nan") for value in line] for line in grid]
    if not grids:
        raise InputError("--plot: no layer has all of its weights measured")
    columns = min(3, len(grids))
    lines = -(-len(grids) // columns)
    figure, axes = plt.subplots(
        lines, columns, squeeze=False, figsize=(4.2 * columns, 3.2 * lines), layout="constrained"
    )
    values = [v for grid in grids.values() for line in grid for v in line if v == v]
    norm = TwoSlopeNorm(1, min(0.5, *values), max(2, *values))
    image = None
    for axis, (zeros, grid) in zip(axes.flat, grids.items()):
        image = axis.imshow(grid, cmap="RdYlGn", norm=norm, aspect="auto", origin="lower")
        if len(args.tokens) > 1 < len(grid) and min(map(min, grid)) < 1 < max(map(max, grid)):
            axis.contour(grid, levels=[1], colors="black")
        for i, line in enumerate(grid):
            for j, value in enumerate(line):
                axis.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=7)
        axis.set_xticks(range(len(args.tokens)), args.tokens)
        shown = [f"{100 * sparsity:.0f} %" for sparsity in zeros.sparsities(args.sparsity)]
        axis.set_yticks(range(len(shown)), shown)
        axis.set_xlabel("columns of B (sequences)")
        axis.set_ylabel("zeros")
        axis.set_title(zeros.label(), fontsize=9)
    for axis in list(axes.flat)[len(grids) :]:
        axis.set_visible(False)
    bar = figure.colorbar(image, ax=axes)
    bar.set_label("dense / sparse time of one layer;\nsparse is faster above 1")
    figure.savefig(args.plot)
    plt.close(figure)


def parse(argv):
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spmmbench", default=find_program())
    parser.add_argument("--out", type=pathlib.Path, required=True, help="result document")
    parser.add_argument("--mode", choices=sorted(DEFAULTS), default="prefill")
    parser.add_argument("--model", type=words, help="of " + ", ".join(LAYERS))
    parser.add_argument("--zeros", type=words, help="block, random, magnitude, 2:4")
    parser.add_argument("--tokens", type=whole_numbers, help="columns of B")
    parser.add_argument("--sparsity", type=numbers)
    parser.add_argument("--block", type=whole_numbers, default=[64, 128])
    parser.add_argument("--kernel", help="sparse kernels: NAME, NAME?key=value or globs")
    parser.add_argument("--precision", default="fp16", choices=["fp16", "bf16", "tf32", "fp8_e4m3"])
    parser.add_argument("--c-type", default="fp32", choices=["fp32", "fp16", "bf16"])
    parser.add_argument("--b-layout", choices=["row", "col"], help="default: row; in decode and fp8 col")
    parser.add_argument("--max-seconds", type=float, default=0.3, help="of sampling per case")
    parser.add_argument("--no-run", action="store_true", help="print an existing document")
    parser.add_argument("--plot", type=pathlib.Path, help="sparsity x N of dense / sparse, one layer")
    args = parser.parse_args(argv)
    if args.precision == "fp8_e4m3":  # tensor cores want both operands along K
        args.b_layout = args.b_layout or "col"
    for name, value in DEFAULTS[args.mode].items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    for name, known in (("model", list(LAYERS)), ("zeros", ["block", "random", "magnitude", "2:4"])):
        for value in getattr(args, name):
            if value not in known:
                parser.error(f"--{name} {value}: expected {', '.join(known)}")
    return args


def main(argv=None):
    args = parse(argv)
    if args.plot:
        require("matplotlib")
    try:
        code = 0 if args.no_run else measure(args)
        if code in ENDED_EARLY:
            return code
        measured = times(asked_for(args, load_document(args.out)), args.mode)
        if args.no_run and measured.keys().isdisjoint(itertools.product(sources(args), args.tokens)):
            raise InputError(
                f"{args.out}: has no verified time of the weights asked for "
                "(--mode, --model, --zeros, --block, --sparsity, --tokens)"
            )
        (print_decode if args.mode == "decode" else print_prefill)(args, measured)
        if args.plot:
            draw(args, measured)
        return code
    except InputError as error:
        print(f"llm_sweep.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
