#!/usr/bin/env python3
"""Tables and a figure of what qwen.py measured.

  report.py qwen.json                       what a terminal shows
  report.py qwen.json --markdown            the same as Markdown
  report.py qwen.json --figure qwen         qwen.svg and qwen.png; needs matplotlib

One table for each number of tokens: milliseconds of each operation in each mode.
"""

import argparse
import pathlib
import sys

from rows import MODES, OPERATIONS

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from command_line import Parser, require, run  # noqa: E402
from result_data import InputError, load_example  # noqa: E402

TOKENS_OF_K = 1024


def by_tokens(document):
    """{tokens: {mode: row}}, in order."""
    out = {}
    for row in document["rows"]:
        out.setdefault(row["n"], {})[row["kernel"]] = row
    return {n: {mode: rows[mode] for mode in MODES if mode in rows} for n, rows in sorted(out.items())}


def said(document):
    """What all rows have in common."""
    context, told = document["context"], document["context"]["protocol"]
    text = f"{context['device']['name']}, {context['started_utc'][:10]}, torch {told['torch']}. "
    text += f"Weights: {told['weights']}"
    text += ", one layer's for all" if told["shared_weights"] else ""
    text += f", {told['zeros']:.0%} zeros in blocks of {told['block']} x {told['block']}. "
    text += f"Dense attention: {told['dense_attention']}; sparse: {told['sparse_attention']}, "
    text += f"{told['pattern']} blocks of {told['attention_block']} x {told['attention_block']}"
    if zeros := told["attention_zeros"]:
        text += f", {', '.join(sorted({f'{share:.1%}' for share in zeros.values()}))} zeros"
    if told["measured_layers"] < told["layers"]:
        text += f". {told['measured_layers']} layers measured, times scaled to {told['layers']}"
    return text + "."


def number(value, form):
    return "-" if value is None else format(value, form)


def table(rows):
    """(header, lines) of one number of tokens."""

    def line(name, of, form):
        return [name, *(number(of(row), form) for row in rows.values())]

    def speedup(row):
        dense = rows.get("dense")
        return dense and dense["hot"]["median_us"] / row["hot"]["median_us"]

    def metric(row, name):
        return row["metrics"].get(name)

    def ms(operation):
        return lambda row: (us := metric(row, f"{operation}_us")) and us / 1e3

    lines = [line(operation, ms(operation), ".2f") for operation in OPERATIONS]
    lines = [one for one in lines if any(cell != "-" for cell in one[1:])]
    lines.append(line("time to first token, ms", lambda row: row["hot"]["median_us"] / 1e3, ".2f"))
    lines.append(line("dense / this", speedup, ".2f"))
    for name in ("linear", "attention"):
        lines.append(line(f"{name}, TFLOP/s", lambda row, name=name: metric(row, f"{name}_tflops"), ".0f"))
    for name, pick in (("fastest", min), ("slowest", max)):
        lines.append(line(f"{name} layer, ms", lambda row, pick=pick: pick(row["layers_us"]) / 1e3, ".3f"))
    lines.append(line("peak memory, GB", lambda row: (b := row["device_bytes"]) and b / 1e9, ".1f"))
    lines.append(line("logits: largest difference", lambda row: metric(row, "logits_difference"), ".2g"))
    lines.append(line("logits: largest", lambda row: metric(row, "logits_largest"), ".2g"))
    return ["ms", *rows], lines


def show(header, lines, markdown):
    if markdown:
        print("| " + " | ".join(header) + " |")
        print("|" + "---|" * len(header))
        for line in lines:
            print("| " + " | ".join(line) + " |")
    else:
        widths = [max(map(len, column)) for column in zip(header, *lines)]
        for first, *cells in [header, *lines]:
            print("  ".join([first.ljust(widths[0]), *map(str.rjust, cells, widths[1:])]))
    print()


def draw(document, out):
    """A bar for each mode, stacked of operations; a panel for each number of tokens."""
    from figures.style import SOFT, plt

    panels = by_tokens(document)
    figure, axes = plt.subplots(
        1, len(panels), figsize=(1.5 + 2.6 * len(panels), 4.2), squeeze=False, layout="constrained"
    )
    colours = plt.get_cmap("tab20").colors
    for axis, (tokens, rows) in zip(axes[0], panels.items()):
        below = [0.0] * len(rows)
        for colour, operation in zip(colours, OPERATIONS):
            heights = [row["metrics"].get(f"{operation}_us", 0) / 1e3 for row in rows.values()]
            if any(heights):
                axis.bar(list(rows), heights, bottom=below, color=colour, label=operation)
            below = [a + b for a, b in zip(below, heights)]
        axis.set_title(f"{tokens / TOKENS_OF_K:g}K tokens")
        axis.tick_params(axis="x", rotation=40)
        axis.grid(axis="x", visible=False)
    axes[0][0].set_ylabel("time to first token, ms")
    handles = {
        label: handle for axis in axes[0] for handle, label in zip(*axis.get_legend_handles_labels())
    }
    names = [name for name in reversed(OPERATIONS) if name in handles]
    axes[0][-1].legend(
        [handles[name] for name in names], names, loc="center left", bbox_to_anchor=(1, 0.5)
    )
    figure.supxlabel(said(document), fontsize=7, color=SOFT, wrap=True)
    for suffix in ("svg", "png"):
        figure.savefig(f"{out}.{suffix}", dpi=130, metadata={"Date": None} if suffix == "svg" else {})


def main():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path, help="what qwen.py wrote")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--figure", metavar="NAME", help="draws NAME.svg and NAME.png")
    args = parser.parse_args()
    if args.figure:
        require("matplotlib")
    document = load_example(args.run)
    if "attention_block" not in document["context"]["protocol"]:
        raise InputError(f"{args.run}: expected what qwen.py wrote")
    print(f"{said(document)}\n")
    for tokens, rows in by_tokens(document).items():
        print(f"{tokens} tokens:\n")
        show(*table(rows), args.markdown)
    for row in document["rows"]:
        if row["status"] != "ok":
            print(f"{row['n']} tokens, {row['kernel']}: {row['reason']}")
    if args.figure:
        draw(document, args.figure)


if __name__ == "__main__":
    run(main)
