#!/usr/bin/env python3
"""Times causal attention alone, with the heads of Qwen2.5-7B: dense, and over the blocks that a pattern
keeps by block_attention and by FlexAttention, whose results are compared.

  attend.py --out attention.csv
  attend.py --out attention.csv --tokens 65536 --blocks 64 --zeros 0.5,0.75,0.9 --precision bf16

Rows: a pattern of qwen.py at a share of zeros of the causal half, which is nearest to what is asked for.
"""

import argparse
import csv
import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from command_line import Parser, require, run  # noqa: E402

require("numpy", "torch", "spmmbench")

import attention  # noqa: E402
import patterns  # noqa: E402
import sizes  # noqa: E402
import torch  # noqa: E402
from prefill import DTYPES  # noqa: E402
from qwen import BLOCKS, numbers, share  # noqa: E402

PATTERNS = (*patterns.STATIC, patterns.TOP)
FIELDS = (
    "tokens block pattern zeros block_attention_us flex_us dense_us find_us tflops flex_tflops dense_tflops difference"
).split()
WARM_UP = 2
LARGEST_DIFFERENCE = {"fp16": 2e-3, "bf16": 1.6e-2}  # of mean values: two roundings of what is below 2


def shares(text):
    return [share(part) for part in text.split(",")]


def time_us(call, samples):
    """The median of `samples` calls."""
    for _ in range(WARM_UP):
        call()
    times = []
    for _ in range(samples):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(1e3 * begin.elapsed_time(end))
    return statistics.median(times)


def pattern_of(name, blocks, zeros, seed):
    return patterns.quota(blocks, zeros) if name == patterns.TOP else patterns.static(name, blocks, zeros, seed)


class Timed:
    """Of one number of tokens."""

    def __init__(self, args, tokens):
        self._args, self._tokens = args, tokens
        random = torch.Generator("cuda").manual_seed(args.seed)
        heads = (sizes.QWEN.num_attention_heads, *[sizes.QWEN.num_key_value_heads] * 2)
        shapes = ((tokens, count, sizes.QWEN.head_size) for count in heads)
        dtype = DTYPES[args.precision]
        self._qkv = [torch.randn(shape, generator=random, device="cuda").to(dtype) for shape in shapes]
        dense = attention.Dense(sizes.QWEN, "cuda", dtype)
        us = time_us(lambda: dense(*self._qkv), args.samples)
        self._dense = {"dense_us": us, "dense_tflops": 1e-6 * sizes.attention_flops(sizes.QWEN, tokens) / us}

    def row(self, block, name, zeros):
        args, blocks = self._args, self._tokens // block
        kept = pattern_of(name, blocks, zeros, args.seed)
        flops = sizes.block_attention_flops(sizes.QWEN, *patterns.counts(kept), block)
        kept_share = patterns.counts(kept)[0] / patterns.total(blocks)
        row = {"tokens": self._tokens, "block": block, "pattern": name, "zeros": 1 - kept_share, **self._dense}
        results = []
        for kernel, field in ((attention.BLOCK_ATTENTION, "block_attention"), (attention.FLEX_ATTENTION, "flex")):
            attend, found = self._attend(name, kept, block, kernel)
            us = row[f"{field}_us"] = time_us(attend, args.samples)
            row["tflops" if field == "block_attention" else "flex_tflops"] = 1e-6 * flops / us
            if kernel == attention.BLOCK_ATTENTION:
                row["find_us"] = found
            results.append(attend())
        row["difference"] = float((results[0] - results[1]).abs().max())
        return row

    def _attend(self, name, kept, block, kernel):
        """(the call, how long finding the blocks took)."""
        q, k, v = self._qkv
        if name != patterns.TOP:
            attend = attention.Static(kept, block, kernel, "cuda")
            return lambda: attend(q, k, v, None), None
        attend = attention.Top(kept, block, kernel, "cuda")
        found = time_us(lambda: attend.pattern(attention.top_blocks(q, k, block)), self._args.samples)
        pattern = attend.pattern(attention.top_blocks(q, k, block))
        return lambda: attend.multiply(q, k, v, pattern), found


def rows(args):
    for tokens in args.tokens:
        timed = Timed(args, tokens)
        for block in args.blocks:
            for name in args.patterns:
                for zeros in args.zeros:
                    yield timed.row(block, name, zeros)


def parse(argv=None):
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--tokens", type=numbers, default=[16384, 32768, 65536])
    parser.add_argument("--blocks", type=numbers, default=list(BLOCKS))
    parser.add_argument("--patterns", type=lambda text: text.split(","), default=list(PATTERNS))
    parser.add_argument("--zeros", type=shares, default=[0.0, 0.5, 0.75, 0.9])
    parser.add_argument("--precision", choices=list(DTYPES), default="fp16")
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(argv)


def main(argv=None):
    args, worst = parse(argv), 0.0
    if not torch.cuda.is_available():
        raise SystemExit("attend.py: no CUDA device")
    with args.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        for row in rows(args):
            writer.writerow({name: f"{x:.4g}" if isinstance(x, float) else x for name, x in row.items()})
            file.flush()
            worst = max(worst, row["difference"])
            said = (f"{name} {row[name]:.0f}" for name in ("block_attention_us", "flex_us", "dense_us", "tflops"))
            print(*(row[name] for name in FIELDS[:3]), f"{row['zeros']:.3f}", *said, flush=True)
    if not worst <= LARGEST_DIFFERENCE[args.precision]:
        raise SystemExit(f"block_attention and FlexAttention differ by {worst:.2g}")


if __name__ == "__main__":
    run(main)
