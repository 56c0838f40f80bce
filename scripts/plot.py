#!/usr/bin/env python3
"""Figures from the JSON that `spmmbench run --json` writes.

  plot.py results.json --out figures
  plot.py results.json --only speedup_distribution,roofline --format pdf --kernels 'rsh*,cusparse*'

A figure whose data a document does not hold is left out, with a line that says why.
"""

import argparse
import fnmatch
import math
import pathlib
import sys
from collections import defaultdict

from result_data import (
    InputError,
    Results,
    case_of,
    cold_us,
    density,
    geomean,
    hot_us,
    load_document,
    median,
    number,
)

try:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib import ticker
except ImportError:
    sys.exit("matplotlib is missing; on Debian: apt-get install python3-matplotlib")

# Okabe and Ito's palette, distinguishable by colour-blind readers; baselines are grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8B5CF6", "#7A4B1E")
GREYS = ("#222222", "#6E6E6E", "#9A9A9A", "#BDBDBD")
MARKERS = "osD^vPX*"
MAX_SERIES = 8
MAX_PANELS = 4
NAMED_MATRICES = 16  # so many matrices still fit their names on an axis

BASELINES = {
    "cusparse_default_fp32": "cuSPARSE default, fp32",
    "cusparse_best": "the fastest cuSPARSE at the same input precision",
    "cublas": "dense cuBLAS",
}

plt.rcParams.update(
    {
        "font.size": 10,
        "axes.titlesize": 10,
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#E3E3E3",
        "grid.linewidth": 0.7,
        "legend.frameon": False,
        "legend.fontsize": 9,
        "lines.linewidth": 1.6,
        "svg.fonttype": "path",
        "svg.hashsalt": "spmmbench",
    }
)


class Missing(Exception):
    """The document lacks what the figure shows; the message says what."""


def score_of(rows):
    return geomean(number(row["of_bound"]) for row in rows) or 0


def styles(results):
    """label -> colour and marker, the same in every figure of one document; the best series first,
    so that those which a figure shows have different colours."""
    series = results.by_series()
    out = {}
    for baseline, colours in ((False, COLOURS), (True, GREYS)):
        group = [label for label, rows in series.items() if rows[0]["baseline"] == baseline]
        for i, label in enumerate(sorted(group, key=lambda label: -score_of(series[label]))):
            out[label] = {"color": colours[i % len(colours)], "marker": MARKERS[i % len(MARKERS)]}
    return out


def main_series(results, own=6, baselines=2, usable=lambda row: True):
    """label -> rows of the best series, ranked by their share of the memory bound."""
    series = {
        label: [row for row in rows if usable(row)] for label, rows in results.by_series().items()
    }
    out = {}
    for baseline, count in ((False, own), (True, baselines)):
        group = [
            label for label, rows in series.items() if rows and rows[0]["baseline"] == baseline
        ]
        for label in sorted(group, key=lambda label: -score_of(series[label]))[:count]:
            out[label] = series[label]
    return out


def panels(count, width=4.6, height=3.6):
    figure, axes = plt.subplots(
        1, count, figsize=(max(7.2, width * count), height), squeeze=False, layout="constrained"
    )
    return figure, axes[0]


def legend(figure, axes):
    handles, labels = {}, []
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            if label not in handles:
                handles[label] = handle
                labels.append(label)
    columns = min(4, len(labels)) if max(map(len, labels), default=0) < 30 else 2
    figure.legend(
        [handles[label] for label in labels],
        labels,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        ncol=columns,
    )


def plain_log(axis, which="y"):
    """A logarithmic axis with 0.5, 1, 2 instead of powers of ten. Call it after plotting."""
    (axis.set_yscale if which == "y" else axis.set_xscale)("log")
    low, high = axis.get_ylim() if which == "y" else axis.get_xlim()
    decades = math.log10(high / low)
    steps = (1, 1.5, 2, 3, 5, 7) if decades < 1.5 else (1, 2, 5) if decades < 3 else (1,)
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**e for e in exponents for step in steps if low <= step * 10.0**e <= high]
    target = axis.yaxis if which == "y" else axis.xaxis
    target.set_major_locator(ticker.FixedLocator(ticks))
    target.set_major_formatter(ticker.FuncFormatter(lambda v, _: f"{v:g}"))
    target.set_minor_locator(ticker.NullLocator())


def name_matrices(axis, order, by):
    """Names on the axis where they fit, else what the order is."""
    axis.grid(axis="x", visible=False)
    if len(order) <= NAMED_MATRICES:
        axis.set_xticks(range(len(order)), order, rotation=60, ha="right", fontsize=8)
    else:
        axis.set_xlabel(f"{len(order)} matrices, {by}")


def speedup_distribution(results, baseline):
    """One point per matrix and series; matrices in order of the best own kernel's speed-up."""

    def speedup(row):
        return row["speedup"][baseline]

    series = main_series(results, usable=lambda r: speedup(r) and not r["binary"])
    if baseline == "cusparse_default_fp32":  # it is the line at 1
        series = {k: rows for k, rows in series.items() if any(speedup(r) != 1 for r in rows)}
    rows = [r for group in series.values() for r in group]
    if not rows:
        raise Missing(f"no speed-up over {baseline}")
    look = styles(results)
    ns = sorted({r["n"] for r in rows})[-MAX_PANELS:]
    figure, axes = panels(len(ns))
    for axis, n in zip(axes, ns):
        best = defaultdict(float)
        for row in rows:
            if row["n"] == n and (not row["baseline"] or all(r["baseline"] for r in rows)):
                name = row["matrix"]["name"]
                best[name] = max(best[name], speedup(row))
        order = {name: i for i, name in enumerate(sorted(best, key=best.get))}
        for label, group in series.items():
            points = sorted(
                (order[r["matrix"]["name"]], speedup(r))
                for r in group
                if r["n"] == n and r["matrix"]["name"] in order
            )
            if points:
                mean = geomean(speedup(r) for r in group)
                text = f"{label} ({mean:.2f}×)"
                axis.plot(*zip(*points), ls="", ms=4.5, alpha=0.9, label=text, **look[label])
        axis.axhline(1, color="#222222", lw=1)
        plain_log(axis)
        axis.set_title(f"N = {n}")
        name_matrices(axis, order, "by the best own kernel")
    axes[0].set_ylabel(f"speed-up over\n{BASELINES[baseline]}")
    legend(figure, axes)
    return figure


def performance_profile(results, _):
    """Fraction of cases in which a series is within a factor of the fastest (Dolan, More 2002)."""
    measured = [r for r in results.measured() if not r["binary"]]
    precisions = sorted({r["precision"] for r in measured})[:MAX_PANELS]
    if not precisions:
        raise Missing("no measured rows")
    look = styles(results)
    figure, axes = panels(len(precisions))
    for axis, precision in zip(axes, precisions):
        fastest = {}
        for row in measured:
            if row["precision"] == precision:
                case = case_of(row)
                fastest[case] = min(fastest.get(case, math.inf), hot_us(row))
        chosen = main_series(
            results, usable=lambda r: r["precision"] == precision and not r["binary"]
        )
        for label, rows in chosen.items():
            ratios = sorted(hot_us(r) / fastest[case_of(r)] for r in rows)
            heights = [(i + 1) / len(fastest) for i in range(len(ratios))]
            axis.step(
                [1, *ratios, 1000],
                [0, *heights, heights[-1]],
                where="post",
                label=label,
                color=look[label]["color"],
            )
        axis.set(xlim=(1, 10), ylim=(0, 1.02), xlabel="time / fastest")
        plain_log(axis, "x")
        axis.set_title(f"{precision}, {len(fastest)} cases")
        axis.yaxis.set_major_formatter(ticker.PercentFormatter(1))
    axes[0].set_ylabel("cases within that factor")
    legend(figure, axes)
    return figure


def roofline(results, _):
    """Fastest own kernel and fastest baseline of every case against the memory roof."""
    bandwidth = max((number(d["context"]["copy_gb_per_s"]) or 0 for d in results.documents))
    rows = [r for r in results.measured() if r["compulsory_bytes"] and not r["binary"]]
    if not rows or not bandwidth:
        raise Missing("no compulsory bytes or no measured bandwidth")
    figure, (axis,) = panels(1, width=7.2, height=4.4)
    intensities = []
    for baseline, colour, name in (
        (True, "#6E6E6E", "baseline"),
        (False, COLOURS[0], "own kernel"),
    ):
        best = {}
        for row in rows:
            key = (*case_of(row), row["precision"])
            if row["baseline"] == baseline and (key not in best or hot_us(row) < hot_us(best[key])):
                best[key] = row
        for time, face, kind in ((hot_us, colour, "hot"), (cold_us, "none", "cold")):
            points = []
            for row in best.values():
                flops = 2 * row["matrix"]["nnz"] * row["n"]
                if time(row) and flops:
                    points.append((flops / row["compulsory_bytes"], flops / time(row) / 1e3))
            if points:
                axis.scatter(
                    *zip(*points), s=24, facecolors=face, edgecolors=colour, linewidths=1,
                    label=f"fastest {name}, {kind}",
                )  # fmt: skip
                intensities += [x for x, _ in points]
    ends = (min(intensities) / 1.5, max(intensities) * 1.5)
    roof = [x * bandwidth for x in ends]
    axis.plot(ends, roof, color="#222222", label=f"copy bandwidth, {bandwidth:.0f} GB/s")
    axis.set(xscale="log", yscale="log", xlabel="useful flops per compulsory byte")
    axis.set_ylabel("GFLOP/s")
    legend(figure, [axis])
    return figure


def density_curves(results, _):
    """Matrices of one shape at several densities: a sweep of pruned or generated weights."""
    groups = defaultdict(list)
    for row in results.measured():
        groups[row["matrix"]["rows"], row["matrix"]["cols"], row["n"]].append(row)
    sweeps = {k: rows for k, rows in groups.items() if len({density(r) for r in rows}) >= 3}
    if not sweeps:
        raise Missing("no shape with three densities")
    look = styles(results)
    chosen = sorted(sweeps, key=lambda key: -len(sweeps[key]))[:MAX_PANELS]
    dense = all(any(r["speedup"]["cublas"] for r in sweeps[key]) for key in chosen)
    figure, axes = panels(len(chosen))
    for axis, key in zip(axes, chosen):
        inside = {id(row) for row in sweeps[key]}
        for label, rows in main_series(results, usable=lambda r: id(r) in inside).items():
            values = defaultdict(list)
            for row in rows:
                if y := row["speedup"]["cublas"] if dense else hot_us(row):
                    values[density(row)].append(y)
            points = sorted((100 * (1 - d), geomean(ys)) for d, ys in values.items())
            if points:
                axis.plot(*zip(*points), ms=5, label=label, **look[label])
        if dense:
            axis.axhline(1, color="#222222", lw=1)
        plain_log(axis)
        axis.set_title("{} x {}, N = {}".format(*key))
        axis.set_xlabel("zeros, %")
    axes[0].set_ylabel("speed-up over dense cuBLAS" if dense else "hot time, us")
    legend(figure, axes)
    return figure


def break_even(results, _):
    """After how many calls preprocessing has paid off: cumulative over the cases."""
    series = {
        label: [number(r["break_even_calls"]) for r in rows if r["break_even_calls"] is not None]
        for label, rows in results.by_series().items()
        if not rows[0]["baseline"]
    }
    series = {label: calls for label, calls in series.items() if calls}
    if not series:
        raise Missing("no break-even counts")
    shown = sorted(series, key=lambda label: median(series[label]))[:MAX_SERIES]
    look = styles(results)
    finite = [c for label in shown for c in series[label] if 0 < c < math.inf]
    end = 2 * max(finite, default=10)
    figure, (axis,) = panels(1, width=7.2, height=3.8)
    for label in shown:
        calls = sorted(max(c, 1) for c in series[label] if math.isfinite(c))
        heights = [(i + 1) / len(series[label]) for i in range(len(calls))]
        axis.step(
            [1, *calls, end], [0, *heights, heights[-1] if heights else 0], where="post",
            label=label, color=look[label]["color"],
        )  # fmt: skip
    axis.set(xscale="log", xlim=(1, end), ylim=(0, 1.02))
    axis.set_xlabel("calls until preprocessing has paid off against cuSPARSE default")
    axis.set_ylabel("cases")
    axis.yaxis.set_major_formatter(ticker.PercentFormatter(1))
    legend(figure, [axis])
    return figure


def format_space(results, _):
    """Bytes per nonzero that each kernel reads of A, values included."""
    rows = [r for r in results.rows if r["format"] and r["matrix"]["nnz"]]
    if not rows:
        raise Missing("no format statistics")
    precisions = sorted({r["precision"] for r in rows})[:MAX_PANELS]
    figure, axes = panels(len(precisions))
    names = sorted({r["format"]["name"] for r in rows})
    for axis, precision in zip(axes, precisions):
        mine = [r for r in rows if r["precision"] == precision]
        order = {}
        for row in sorted(mine, key=lambda r: r["matrix"]["mean_row"]):
            order.setdefault(row["matrix"]["name"], len(order))
        for i, name in enumerate(names):
            points = sorted(
                {
                    (order[r["matrix"]["name"]], r["format"]["bytes"] / r["matrix"]["nnz"])
                    for r in mine
                    if r["format"]["name"] == name
                }
            )
            if points:
                colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
                axis.plot(*zip(*points), ls="", ms=5, marker=marker, color=colour, label=name)
        plain_log(axis)
        axis.set_title(precision)
        name_matrices(axis, order, "by mean row length")
    axes[0].set_ylabel("bytes of A per nonzero")
    legend(figure, axes)
    return figure


FIGURES = {
    "speedup_distribution": speedup_distribution,
    "performance_profile": performance_profile,
    "roofline": roofline,
    "density_curves": density_curves,
    "break_even": break_even,
    "format_space": format_space,
}


def draw(results, baseline="cusparse_default_fp32", only=None):
    """Yields (name, figure or None, reason). The caller closes the figures."""
    for name, function in FIGURES.items():
        if only and name not in only:
            continue
        try:
            yield name, function(results, baseline), ""
        except Missing as reason:
            plt.close("all")
            yield name, None, str(reason)


def main(argv):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="+", help="JSON of spmmbench run")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("figures"))
    parser.add_argument("--format", default="png", help="png, svg, pdf; several with commas")
    parser.add_argument("--only", default="", help=", ".join(FIGURES))
    parser.add_argument("--kernels", default="*", help="globs, comma-separated")
    parser.add_argument("--baseline", choices=BASELINES, default="cusparse_default_fp32")
    args = parser.parse_args(argv)
    only = [name for name in args.only.split(",") if name]
    if unknown := set(only) - set(FIGURES):
        parser.error(f"no figure is called {', '.join(sorted(unknown))}")
    try:
        documents = [load_document(path) for path in args.results]
    except InputError as error:
        print(f"plot.py: {error}", file=sys.stderr)
        return 1
    globs = args.kernels.split(",")
    for document in documents:
        document["rows"] = [
            row
            for row in document["rows"]
            if any(fnmatch.fnmatchcase(row["kernel"], glob) for glob in globs)
        ]
    args.out.mkdir(parents=True, exist_ok=True)
    for name, figure, reason in draw(Results(documents), args.baseline, only):
        if figure is None:
            print(f"{name}: left out: {reason}", file=sys.stderr)
            continue
        for extension in args.format.split(","):
            figure.savefig(args.out / f"{name}.{extension}", dpi=160, bbox_inches="tight")
        plt.close(figure)
        print(args.out / f"{name}.{args.format.split(',')[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
