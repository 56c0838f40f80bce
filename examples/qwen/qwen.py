#!/usr/bin/env python3
"""Times the prefill of Qwen2.5-7B, from the tokens to the logits of the last one, with dense and with
block-sparse weights and attention (the set-up of AsyncSparse).

  qwen.py --out qwen.json                                   64K tokens, 90 % zeros in 128 x 128 blocks
  qwen.py --out qwen.json --tokens 4096,16384,32768,65536 --layers 4
  qwen.py --out qwen.json --checkpoint Qwen2.5-7B --precision bf16
  qwen.py --out qwen.json --pattern top --attention-zeros 0.8
  report.py qwen.json --figure qwen                         tables, and qwen.svg and qwen.png, of it

Modes: `dense` (cuBLAS, and cuDNN or FlashAttention), `linear` (weights pruned to blocks, multiplied by
async_bcsr), `attention` (block-sparse, by block_attention), `flex` (the same by FlexAttention), `both`;
and with linear `pruned`, which is `dense` with the zeros of `linear`. Logits of `attention`, `linear`
and `both` are compared with those of FlexAttention and dense weights with the same zeros. That checks the products; it says nothing about what pruning does to a
model. Weights are random, of an untrained model, unless --checkpoint names a folder.

On a GPU a pass is one CUDA graph, with an event behind each operation.
"""

import argparse
import datetime
import gc
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from command_line import Parser, require, run  # noqa: E402

require("numpy")

import checkpoint  # noqa: E402
import patterns  # noqa: E402
import sizes as sizes_of  # noqa: E402
from rows import LARGEST_DIFFERENCE, LINEAR, MODES, SPARSE_ATTENTION, SPARSE_LINEAR  # noqa: E402

BLOCKS = (64, 128)
RESERVE = 1.1  # times the bytes that are counted: libraries and the allocator take some


def numbers(text):
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        values = [0]
    if min(values) < 1:
        raise argparse.ArgumentTypeError(f"'{text}': expected whole numbers from 1, with commas between")
    return values


def share(text):
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"'{text}': expected a share from 0 to below 1")
    return value


def modes(text):
    asked = text.split(",")
    for name in asked:
        if name not in MODES:
            raise argparse.ArgumentTypeError(f"'{name}': expected of {', '.join(MODES)}")
    if set(asked) & set(SPARSE_LINEAR):
        asked.append("pruned")
    return [mode for mode in MODES if mode in asked]


def parse(argv=None):
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="JSON, like that of spmmbench")
    parser.add_argument("--tokens", type=numbers, default=[65536])
    parser.add_argument("--modes", type=modes, default=list(MODES))
    parser.add_argument("--precision", choices=list(LARGEST_DIFFERENCE), default="fp16")
    parser.add_argument("--zeros", type=share, default=0.9, help="of the weights' blocks")
    parser.add_argument("--block", type=int, choices=BLOCKS, default=128, help="of weights")
    pattern = parser.add_mutually_exclusive_group()
    pattern.add_argument("--pattern", choices=(*patterns.STATIC, patterns.TOP), default="random")
    pattern.add_argument("--mask", type=pathlib.Path, help=".npy of kept blocks of attention")
    parser.add_argument("--attention-zeros", type=share, default=0.9, help="of the causal half's blocks")
    parser.add_argument("--attention-block", type=int, choices=BLOCKS, default=128, help="of tokens")
    parser.add_argument("--layers", type=int, metavar="L", help="measures L layers; totals are scaled")
    parser.add_argument("--config", type=pathlib.Path, help="config.json of another Qwen2 model")
    parser.add_argument("--checkpoint", type=pathlib.Path, metavar="FOLDER", help="safetensors shards")
    parser.add_argument(
        "--shared-weights",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="all layers have the same random weights; not with --checkpoint",
    )
    parser.add_argument("--samples", type=int, default=5, help="passes that are timed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    args = parser.parse_args(argv)
    if args.samples < 1:
        parser.error("--samples is a number from 1")
    return args


def checked(args):
    """Sets args.sizes, args.layers and args.kept ({tokens: pattern}); SystemExit where what is asked
    for does not fit together."""
    args.sizes = sizes_of.read(args.config) if args.config else sizes_of.QWEN
    all_layers = args.sizes.num_hidden_layers
    args.layers = all_layers if args.layers is None else args.layers
    if not 1 <= args.layers <= all_layers:
        raise SystemExit(f"--layers {args.layers}: the model has {all_layers}")
    if set(args.modes) & set(SPARSE_LINEAR):
        for name in LINEAR:
            rows, cols = args.sizes.shape(name)
            if rows % args.block or cols % args.block:
                raise SystemExit(f"--block {args.block}: {name} of {rows} x {cols} is not made of such blocks")
    args.kept = {}
    if set(args.modes) & set(SPARSE_ATTENTION):
        args.kept = {tokens: pattern_of(args, tokens) for tokens in args.tokens}
    if args.checkpoint:
        args.shared_weights = False
        checkpoint.check(args.checkpoint, args.sizes.tensors(args.layers))
    return args


def pattern_of(args, tokens):
    """[blocks x blocks] of truth values; of `top` how many each row keeps."""
    blocks, rest = divmod(tokens, args.attention_block)
    if rest:
        raise SystemExit(f"--tokens {tokens}: no multiple of attention's blocks of {args.attention_block}")
    if args.mask:
        kept = patterns.read(args.mask, blocks)
        if kept.ndim == 3 and len(kept) != args.sizes.num_attention_heads:
            raise SystemExit(f"{args.mask}: {len(kept)} heads; {args.sizes.num_attention_heads} are wanted")
        return kept
    if args.attention_zeros > patterns.most_zeros(blocks):
        most = 100 * patterns.most_zeros(blocks)
        raise SystemExit(
            f"--attention-zeros {args.attention_zeros:g}: the diagonal of {blocks} x {blocks} blocks is kept,"
            f" which leaves at most {most:.1f} % zeros"
        )
    if args.pattern == patterns.TOP:
        return patterns.quota(blocks, args.attention_zeros)
    return patterns.static(args.pattern, blocks, args.attention_zeros, args.seed)


def check_memory(args, free):
    """SystemExit where `free` bytes do not suffice."""
    stored = 1 if args.shared_weights else args.layers
    zeros = args.zeros if set(args.modes) & set(SPARSE_LINEAR) else None
    needed = RESERVE * sizes_of.memory_bytes(args.sizes, stored, max(args.tokens), zeros)
    if needed > free:
        raise SystemExit(
            f"{max(args.tokens)} tokens and weights of {stored} layers need {needed / 1e9:.1f} GB, and "
            f"{free / 1e9:.1f} GB are free: take fewer --tokens or --layers"
        )


def revision():
    folder = pathlib.Path(__file__).parent
    try:
        command = ["git", "-C", str(folder), "rev-parse", "--short=12", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def context(args, device_name, attentions, torch_version):
    """`attentions`: names of the dense and the block-sparse one."""
    return {
        "device": {"name": device_name},
        "started_utc": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "git_revision": revision(),
        "argv": sys.argv,
        "seed": args.seed,
        "protocol": {
            "torch": torch_version,
            "layers": args.sizes.num_hidden_layers,
            "measured_layers": args.layers,
            "shared_weights": args.shared_weights,
            "weights": "checkpoint" if args.checkpoint else "random",
            "block": args.block,
            "zeros": args.zeros,
            "dense_attention": attentions[0],
            "sparse_attention": attentions[1],
            "pattern": args.mask.name if args.mask else args.pattern,
            "attention_block": args.attention_block,
            "attention_zeros": {tokens: patterns.share_of_zeros(kept) for tokens, kept in args.kept.items()},
        },
    }


def write(path, document):
    """The document with a line per row."""
    rows = ",\n".join(json.dumps(row) for row in document["rows"])
    head = f'"schema_version": 1, "context": {json.dumps(document["context"])}'
    path.write_text(f'{{{head},\n"rows": [\n{rows}\n]}}\n')


def free_bytes(torch, device):
    if device == "cuda":
        return torch.cuda.mem_get_info()[0]
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def measure(args):
    """Writes a row after the other; returns them."""
    start = time.perf_counter()
    import torch

    import spmmbench

    if args.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("no CUDA device: --device cpu takes small models")
    check_memory(args, free_bytes(torch, args.device))
    from prefill import Prefill

    gc.disable()  # memory that is freed during a capture would end it
    try:
        spmmbench.load()
        prefill = Prefill(args)
        name = torch.cuda.get_device_name() if args.device == "cuda" else "CPU"
        attentions = (prefill.dense_attention, prefill.sparse_attention)
        told = context(args, name, attentions, torch.__version__)
        document = {"context": told, "rows": []}
        for row in prefill.rows():
            document["rows"].append(row)
            write(args.out, document)
            line = f"{time.perf_counter() - start:.0f} s: {row['n']} tokens, {row['kernel']}: "
            said = f", {row['reason']}" if row["reason"] else ""
            print(f"{line}{row['hot']['median_us'] / 1e3:.2f} ms{said}", flush=True)
    except torch.cuda.OutOfMemoryError as error:
        raise SystemExit(str(error).partition("\n")[0]) from None
    return document["rows"]


def main(argv=None):
    args = checked(parse(argv))
    require("numpy", "torch", "spmmbench")
    rows = measure(args)
    return 2 if any(row["status"] == "wrong" for row in rows) else 0


if __name__ == "__main__":
    run(main)
