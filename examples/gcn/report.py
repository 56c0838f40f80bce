#!/usr/bin/env python3
"""Tables and a figure of what gcn.py or minibatch.py measured.

  report.py gcn.json                       what a terminal shows
  report.py gcn.json --markdown            the same as Markdown
  report.py gcn.json --figure gcn          gcn.svg and gcn.png; needs matplotlib

Speed-ups are epochs of torch.sparse over epochs of the backend, in the same precision. A row counts
only where its losses are those of torch.sparse, within the noise.
"""

import argparse
import itertools
import math
import pathlib
import sys
import textwrap

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from command_line import Parser, require, run  # noqa: E402
from result_data import load_json  # noqa: E402

REFERENCE = "torch"
SHOWN = {
    "torch": "torch.sparse",
    "pyg": "PyG",
    "auto": "auto",
    "checked": "auto, A checked",
    "rsh": "rsh",
    "async_wcsr": "async_wcsr",
    "csr_merge": "csr_merge",
}
EPOCHS_OF_PAPER = 500
# Training amplifies rounding, so the losses of two right products part. They part too far when it is
# by more than this many times the noise, and by more than this share of what was learnt.
NOISE_FACTOR, LEAST_DIFFERENCE = 3, 1e-2


def loss_difference(losses, reference):
    """Largest |loss - reference loss| of an epoch, over all that the reference learnt."""
    learnt = reference["losses"][0] - min(reference["losses"])
    if learnt <= 0 or not all(map(math.isfinite, losses)):
        return math.inf
    return max(abs(x - y) for x, y in zip(losses, reference["losses"])) / learnt


def loss_noise(reference, in_fp32, epochs):
    """How far the losses of torch.sparse part from themselves: with initial weights changed by an
    ulp, and against fp32 (None where that was not run)."""
    others = [reference["losses_nudged"]] + ([in_fp32["losses"]] if in_fp32 else [])
    return max(loss_difference(losses[:epochs], reference) for losses in others)


def geomean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


class Cases:
    """Rows by graph, width and precision; only those that are ok."""

    def __init__(self, rows):
        self.cases = {}
        for row in rows:
            key = (row["graph"]["name"], row["width"], row["precision"])
            self.cases.setdefault(key, {})[row["backend"]] = row
        self.backends = [name for name in SHOWN if any(name in c for c in self.cases.values())]

    def ok(self, key, backend):
        row = self.cases.get(key, {}).get(backend)
        return row if row and row["status"] == "ok" else None

    def differences(self, key, backend):
        """(how far its losses are from those of torch.sparse, how far is noise), or None."""
        row, reference = self.ok(key, backend), self.ok(key, REFERENCE)
        if not row or not reference or backend == REFERENCE:
            return None
        in_fp32 = self.ok((*key[:2], "fp32"), REFERENCE)
        epochs = len(row["losses"])
        return loss_difference(row["losses"], reference), loss_noise(reference, in_fp32, epochs)

    def speedup(self, key, backend, field="epoch_ms"):
        row, reference = self.ok(key, backend), self.ok(key, REFERENCE)
        if not row or not reference:
            return None
        return reference[field]["median"] / row[field]["median"]

    def with_preparation(self, key, backend):
        row, reference = self.ok(key, backend), self.ok(key, REFERENCE)
        if not row or not reference:
            return None
        ms = [r["prepare_ms"] + EPOCHS_OF_PAPER * r["epoch_ms"]["median"] for r in (reference, row)]
        return ms[0] / ms[1]

    def preparation(self, key, backend):
        """What preparation adds to the epochs of the paper, as a share of them."""
        row = self.ok(key, backend)
        return row["prepare_ms"] / (EPOCHS_OF_PAPER * row["epoch_ms"]["median"]) if row else None

    def whole_run(self, key, backend):
        """What a run that is told nothing takes beyond its epochs when all was prepared, as a share of them."""
        row = self.ok(key, backend)
        if not row or "run" not in row:
            return None
        return row["run"]["ms"]["median"] / row["run"]["prepared_ms"]["median"] - 1

    def share(self, key, backend):
        row = self.ok(key, backend)
        return row["product_ms"] / row["epoch_ms"]["median"] if row else None


def text(value, form):
    return "-" if value is None or math.isnan(value) else format(value, form)


def case_table(cases, precision):
    """One line per graph and width: milliseconds of an epoch, speed-ups, shares of the product."""
    others = [name for name in cases.backends if name != REFERENCE]
    header = ["graph", "width"]
    header += [f"{SHOWN[name]} ms" for name in cases.backends]
    header += [f"{SHOWN[name]} x" for name in others] + ["launched x", "share before", "after"]
    rows = [row for key, case in cases.cases.items() if key[2] == precision for row in case.values()]
    tells = any("first_prepare_ms" in row for row in rows)
    if tells:
        header += ["auto's preparation ms", "the first time ms", f"of {EPOCHS_OF_PAPER} epochs"]
    runs_whole = any(row.get("run") for row in rows)
    if runs_whole:
        header += ["in a run that is told nothing"]
    header += ["loss, difference", "noise"]
    lines = []
    for key in cases.cases:
        if key[2] != precision:
            continue
        line = [key[0], str(key[1])]
        for name in cases.backends:
            row = cases.ok(key, name)
            line.append(text(row and row["epoch_ms"]["median"], ".3f"))
        line += [text(cases.speedup(key, name), ".2f") for name in others]
        line.append(text(cases.speedup(key, "auto", "eager_epoch_ms"), ".2f"))
        line += [text(cases.share(key, name), ".0%") for name in (REFERENCE, "auto")]
        if tells:
            row = cases.ok(key, "auto")
            line += [text(row and row[field], ".2f") for field in ("prepare_ms", "first_prepare_ms")]
            line.append(text(cases.preparation(key, "auto"), ".1%"))
        if runs_whole:
            line.append(text(cases.whole_run(key, "auto"), ".1%"))
        line += [text(x, ".1e") for x in cases.differences(key, "auto") or (None, None)]
        lines.append(line)
    return header, lines


def summary_table(cases):
    """Geometric means over the graphs."""
    header = ["precision", "width", "backend", "cases", "x torch.sparse", "least", "launched x"]
    header += [f"x with preparation, {EPOCHS_OF_PAPER} epochs", "share before", "after"]
    header += ["x PyG"]
    lines = []
    precisions = list(dict.fromkeys(key[2] for key in cases.cases))
    widths = list(dict.fromkeys(key[1] for key in cases.cases))
    for precision in precisions:
        for width in [*widths, None]:
            keys = [k for k in cases.cases if k[2] == precision and width in (k[1], None)]
            for name in cases.backends:
                found = [k for k in keys if cases.speedup(k, name) is not None]
                if name == REFERENCE or not found:
                    continue
                ratios = [cases.speedup(k, name) for k in found]
                pyg = [
                    cases.speedup(k, name) / cases.speedup(k, "pyg")
                    for k in found
                    if cases.speedup(k, "pyg")
                ]
                mean = lambda values: text(geomean(values), ".2f")  # noqa: E731
                shares = [
                    sum(cases.share(k, who) for k in found) / len(found) for who in (REFERENCE, name)
                ]
                lines.append(
                    [precision, "all" if width is None else str(width), SHOWN[name]]
                    + [str(len(found)), mean(ratios), text(min(ratios), ".2f")]
                    + [mean(cases.speedup(k, name, "eager_epoch_ms") for k in found)]
                    + [mean(cases.with_preparation(k, name) for k in found)]
                    + [text(share, ".0%") for share in shares]
                    + [mean(pyg)]
                )
    return header, lines


def minibatch_table(rows):
    """One line per case of minibatch.py, and means: milliseconds with torch.sparse, and speed-ups over
    it, of a step's products with their preparation and of the whole step."""
    cases = {}
    for row in rows:
        key = (row["precision"], row["batch"], row["width"], row["graph"]["name"])
        cases.setdefault(key, {})[row["backend"]] = row
    others = [b for b in SHOWN if b != REFERENCE and any(b in case for case in cases.values())]
    header = ["precision", "batch", "width", "graph", "nonzeros", "sampling ms"]
    for what in ("products", "step"):
        header += [f"{what}, torch.sparse ms"] + [f"{SHOWN[b]} x" for b in others]
    lines, ratios = [], {}
    for key, case in sorted(cases.items()):
        ok = {b: row for b, row in case.items() if row["status"] == "ok"}
        first = next(iter(case.values()))
        line = [*map(str, key), str(first["nonzeros"]), f"{first['sample_ms']['median']:.2f}"]
        for field in ("product_ms", "step_ms"):
            reference = ok[REFERENCE][field]["median"] if REFERENCE in ok else math.nan
            line.append(text(reference, ".2f"))
            for b in others:
                ratio = reference / ok[b][field]["median"] if b in ok else math.nan
                ratios.setdefault((*key[:2], field, b), []).append(ratio)
                line.append(text(ratio, ".2f"))
        lines.append(line)
    for precision, batch in sorted({key[:2] for key in cases}):
        line = [precision, str(batch), "", "mean", "", ""]
        for field in ("product_ms", "step_ms"):
            means = [geomean(filter(math.isfinite, ratios[precision, batch, field, b])) for b in others]
            line += [""] + [text(mean, ".2f") for mean in means]
        lines.append(line)
    return header, lines


def show(table, markdown):
    header, lines = table
    if markdown:
        print("| " + " | ".join(header) + " |")
        print("|" + "---|" * len(header))
        for line in lines:
            print("| " + " | ".join(line) + " |")
    else:
        widths = [max(len(cell) for cell in column) for column in zip(header, *lines)]
        for line in [header, *lines]:
            print("  ".join(cell.rjust(width) for cell, width in zip(line, widths)))
    print()


def check_losses(cases):
    """One line per row whose losses part from those of torch.sparse."""
    lines = []
    for key in cases.cases:
        for name in cases.backends:
            difference, noise = cases.differences(key, name) or (0, 0)
            if difference > max(NOISE_FACTOR * noise, LEAST_DIFFERENCE):
                case = f"{' '.join(map(str, key))} {name}"
                lines.append(f"{case}: losses differ by {difference:.1e}, the noise is {noise:.1e}")
    return lines


def bars_missing(cases):
    """Which bars the figure lacks, and why, one sentence for each backend and precision."""
    lacking = {}
    precisions, places = (list(dict.fromkeys(key)) for key in (
        [key[2] for key in cases.cases], [key[:2] for key in cases.cases]))  # fmt: skip
    for precision, name, place in itertools.product(precisions, cases.backends, places):
        key = (*place, precision)
        row = cases.cases.get(key, {}).get(name)
        if cases.speedup(key, name) is None:
            why = row["reason"] if row and row["status"] != "ok" else "not measured"
            lacking.setdefault((SHOWN[name], precision, why), []).append(" ".join(map(str, place)))
    together = {}
    for (name, precision, why), where in lacking.items():
        on = "" if len(where) == len(places) else f" on {', '.join(where)}"
        together.setdefault(f"in {precision}{on}: {why}", []).append(name)
    return [f"{', '.join(names)} {where}" for where, names in together.items()]


def draw(cases, context, out):
    from figures.style import GREYS, SOFT, colour_of, plt

    precisions = list(dict.fromkeys(key[2] for key in cases.cases))
    widths = list(dict.fromkeys(key[1] for key in cases.cases))
    graphs = list(dict.fromkeys(key[0] for key in cases.cases))
    greys = {"torch": GREYS[1], "pyg": GREYS[4]}
    colours = {name: greys.get(name) or colour_of(name) for name in cases.backends}
    size = (max(7.0, 1.6 + 0.5 * len(graphs) * len(widths)), 1.9 + 1.8 * len(precisions))
    figure, axes = plt.subplots(
        len(precisions), len(widths), figsize=size, sharex=True, sharey="row", squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for line, precision in zip(axes, precisions):
        for axis, width in zip(line, widths):
            for index, name in enumerate(cases.backends):
                x, y = [], []
                for place, graph in enumerate(graphs):
                    ratio = cases.speedup((graph, width, precision), name)
                    if ratio is not None:
                        x.append(place + (index - (len(cases.backends) - 1) / 2) * 0.16)
                        y.append(ratio)
                axis.bar(x, y, 0.15, color=colours[name], label=SHOWN[name])
            axis.axhline(1, color=GREYS[0], linewidth=0.8)
            axis.set_title(f"{precision}, {width} wide")
            axis.set_xticks(range(len(graphs)), graphs, rotation=40, ha="right")
            axis.grid(axis="x", visible=False)
        line[0].set_ylabel("x torch.sparse")
    named = {
        label: handle
        for axis in axes.flat
        for handle, label in zip(*axis.get_legend_handles_labels())
        if handle.patches  # drawn here
    }
    made = [context["device"], context.get("started_utc", "")[:10], f"torch {context['torch']}"]
    title = f"An epoch of a GCN of {context['layers']} layers: time with torch.sparse over the backend's"
    figure.suptitle(f"{title}\n{', '.join(filter(None, made))}", x=0.01, y=0.995, ha="left", va="top")
    above, below = 0.75 / size[1], 0.35 / size[1]  # inches for title and legend, and for what is missing
    figure.legend(
        named.values(), named, ncols=len(named), loc="upper left", bbox_to_anchor=(0, 1 - 0.42 / size[1])
    )
    if missing := bars_missing(cases):
        text = textwrap.fill(f"No bar: {'; '.join(missing)}.", int(14 * size[0]))
        figure.text(0.01, 0.01, text, fontsize=8, color=SOFT, va="bottom")
    figure.get_layout_engine().set(rect=(0, below, 1, 1 - above - below))
    for suffix in ("svg", "png"):
        figure.savefig(f"{out}.{suffix}", dpi=130, metadata={"Date": None} if suffix == "svg" else {})


def read(path):
    document = load_json(path)
    whole = isinstance(document, dict) and {"context", "rows"} <= set(document)
    if not whole or any("graph" not in row for row in document["rows"]):
        raise SystemExit(f"report.py: {path}: expected what gcn.py or minibatch.py wrote")
    return document


def main():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="what gcn.py or minibatch.py wrote")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--figure", metavar="NAME", help="draws NAME.svg and NAME.png of gcn.py's")
    args = parser.parse_args()
    if args.figure:
        require("matplotlib")
    document = read(args.run)
    if "fanouts" in document["context"]:
        return show(minibatch_table(document["rows"]), args.markdown)
    cases = Cases(document["rows"])
    show(summary_table(cases), args.markdown)
    for precision in dict.fromkeys(key[2] for key in cases.cases):
        print(f"{precision}:\n")
        show(case_table(cases, precision), args.markdown)
    for row in document["rows"]:
        if row["status"] != "ok":
            case = f"{row['graph']['name']} {row['width']} {row['precision']} {row['backend']}"
            print(f"{case}: {row['reason']}")
    for line in check_losses(cases):
        print(line)
    if args.figure:
        draw(cases, document["context"], args.figure)


if __name__ == "__main__":
    run(main)
