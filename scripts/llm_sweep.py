#!/usr/bin/env python3
"""Prefill of Qwen2.5-7B with block-sparse weights: what each linear layer, one FFN and all 28 layers
take with sparse and with dense (cuBLAS) weights.

  llm_sweep.py --out sweep.json
  llm_sweep.py --out sweep.json --tokens 1024,4096 --sparsity 0.9 --block 64 --b-layout col

Measures with `spmmbench run --resume`, so that an interrupted sweep continues where it stopped. Times
are hot medians of the linear layers alone: no attention scores, norms or activation functions.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

from result_data import InputError, hot_us, load_document

LAYERS = 28
# Weights of one layer that share a shape are measured once: (generator, how many).
FFN = (("ffn_gate", 2), ("ffn_down", 1))  # gate and up; down
ATTENTION = (("attn_q", 2), ("attn_k", 2))  # q and o; k and v
DENSE = "cublas_dense"


def number_list(kind):
    return lambda text: [kind(part) for part in text.split(",")]


def source(weight, block, sparsity):
    return f"gen:qwen2.5-7b/{weight}?block={block}&sparsity={sparsity:g}"


def measure(args):
    binary = shutil.which(args.spmmbench) or args.spmmbench
    inputs = [
        source(weight, block, sparsity)
        for block in args.block
        for sparsity in args.sparsity
        for weight, _ in FFN + ATTENTION
    ]
    command = [binary, "run", *inputs, "-n", ",".join(map(str, args.tokens))]
    command += ["-k", f"{args.kernel},{DENSE}", "--no-baselines", "--resume"]
    command += ["--precision", args.precision, "--c-type", args.c_type]
    command += ["--b-layout", args.b_layout, "--json", str(args.out), "--quiet"]
    command += ["--max-seconds", f"{args.max_seconds:g}"]
    try:
        return subprocess.run(command, check=False).returncode
    except OSError as error:
        raise InputError(f"{binary}: {error.strerror} (build first, or give --spmmbench)") from None


def times(document):
    """(source, tokens) -> {"dense" or "sparse": microseconds} of verified rows."""
    out = {}
    for row in document["rows"]:
        if row["status"] == "ok" and (us := hot_us(row)):
            side = "dense" if row["kernel"] == DENSE else "sparse"
            out.setdefault((row["matrix"]["source"], row["n"]), {})[side] = us
    return out


def total(measured, weights, block, sparsity, tokens, side):
    """Microseconds of all weights of one layer; None when one is missing."""
    parts = [
        (measured.get((source(weight, block, sparsity), tokens), {}).get(side), count)
        for weight, count in weights
    ]
    return None if any(us is None for us, _ in parts) else sum(us * count for us, count in parts)


def cell(value, width, digits):
    return f"{value:{width}.{digits}f}" if value is not None else "-".rjust(width)


def print_table(args, measured):
    head = f"{'block':>5} {'zeros':>5} {'tokens':>6} | {'FFN dense':>10} {'sparse':>9} {'x':>5} |"
    print(f"{head} {f'{LAYERS} layers dense':>15} {'sparse':>9} {'x':>5}")
    print(f"{'':>5} {'':>5} {'':>6} | {'us':>10} {'us':>9} {'':>5} | {'ms':>15} {'ms':>9}")
    for block in args.block:
        for sparsity in args.sparsity:
            for tokens in args.tokens:
                line = f"{block:>5} {100 * sparsity:>4.0f}% {tokens:>6} |"
                for weights, scale, widths in ((FFN, 1, (10, 9)), (FFN + ATTENTION, LAYERS, (15, 9))):
                    dense, sparse = (
                        total(measured, weights, block, sparsity, tokens, side)
                        for side in ("dense", "sparse")
                    )
                    ratio = dense / sparse if dense and sparse else None
                    unit = scale / 1000 if scale > 1 else 1
                    digits = 2 if scale > 1 else 1
                    line += f" {cell(dense and dense * unit, widths[0], digits)}"
                    line += f" {cell(sparse and sparse * unit, widths[1], digits)}"
                    line += f" {cell(ratio, 5, 2)} |"
                print(line.rstrip(" |"))


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    build = pathlib.Path(__file__).resolve().parents[1] / "build" / "release" / "spmmbench"
    parser.add_argument("--spmmbench", default=os.environ.get("SPMMBENCH", str(build)))
    parser.add_argument("--out", type=pathlib.Path, required=True, help="result document")
    parser.add_argument("--tokens", type=number_list(int), default=[2**i for i in range(10, 17)])
    parser.add_argument(
        "--sparsity", type=number_list(float), default=[0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    )
    parser.add_argument("--block", type=number_list(int), default=[64, 128])
    parser.add_argument("--kernel", default="async_bcsr", help="NAME or NAME?key=value")
    parser.add_argument("--precision", default="fp16", choices=["fp16", "bf16", "tf32"])
    parser.add_argument("--c-type", default="fp32", choices=["fp32", "fp16", "bf16"])
    parser.add_argument("--b-layout", default="row", choices=["row", "col"])
    parser.add_argument("--max-seconds", type=float, default=0.3, help="of sampling per case")
    parser.add_argument("--no-run", action="store_true", help="print an existing document")
    args = parser.parse_args(argv)
    try:
        code = 0 if args.no_run else measure(args)
        if code == 1:
            return code
        print_table(args, times(load_document(args.out)))
        return code
    except InputError as error:
        print(f"llm_sweep.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
