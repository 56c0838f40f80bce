"""Density curves: matrices of one family and shape at several densities."""

import re
from collections import defaultdict

from result_data import density, geomean, hot_us

from .style import (
    INK,
    MAX_PANELS,
    Missing,
    choose_series,
    finish,
    panels,
    plain_log,
    shown,
    styles,
    wins_of,
)

VARYING = (
    "sparsity",
    "density",
    "seed",
    "pattern",
)  # options of a generator that make no other family


def zeros_of(row):
    """The share of zeros that a point of the curve is at. Matrices of one share differ little, by their
    seeds, so it has three digits of the smaller of the two: zeros or nonzeros."""
    full = density(row)
    return 1 - float(f"{full:.3g}") if full < 0.5 else float(f"{1 - full:.3g}")


def shape_of(row):
    return [row["matrix"]["rows"], row["matrix"]["cols"], row["n"], row["layout"]]


def family_of(row):
    """The generator with its other options; files of one shape are one family."""
    source = row["matrix"]["source"]
    if not source.startswith("gen:"):
        return "files"
    name, _, options = source.partition("?")
    kept = [
        o for o in options.split("&") if o and o.partition("=")[0] not in (*VARYING, "rows", "cols")
    ]
    return name.removeprefix("gen:") + ("?" + "&".join(sorted(kept)) if kept else "")


def unpruned_dense(results, key):
    """Hot time of dense cuBLAS on the densest matrix of the shape: what pruning is decided against."""
    run, _, *shape = key
    dense = [
        row
        for row in results.ranked()
        if row["kernel"].startswith("cublas") and row["run"] == run and shape_of(row) == shape
    ]
    return {
        precision: hot_us(max((r for r in dense if r["precision"] == precision), key=density))
        for precision in {row["precision"] for row in dense}
    }


def density_curves(results, _):
    sweeps = defaultdict(list)
    for row in results.ranked():
        sweeps[row["run"], family_of(row), *shape_of(row)].append(row)
    sweeps = {key: rows for key, rows in sweeps.items() if len(set(map(zeros_of, rows))) >= 3}
    if not sweeps:
        raise Missing("no shape with three densities")
    chosen = sorted(sweeps, key=lambda key: -len(set(map(zeros_of, sweeps[key]))))
    notes = [
        f"Left out: {len(chosen) - MAX_PANELS} more shapes." if len(chosen) > MAX_PANELS else ""
    ]
    chosen = chosen[:MAX_PANELS]
    dense_of = {key: unpruned_dense(results, key) for key in chosen}
    over_dense = all(dense_of.values())
    look, drawn = styles(results), []
    figure, axes = panels(len(chosen), sharey=over_dense)
    for axis, key in zip(axes, chosen):
        rows = sweeps[key]
        drawn += rows
        dense = dense_of[key]
        by_matrix = defaultdict(list)
        for row in rows:
            by_matrix[row["matrix"]["sha256"], row["matrix"]["name"], row["precision"]].append(row)
        labels, note = choose_series(
            rows, wins_of(by_matrix), lambda g: 1 / geomean(map(hot_us, g))
        )
        notes.append(note)
        for label in labels:
            values = defaultdict(list)
            for row in rows:
                if row["label"] == label and (not over_dense or row["precision"] in dense):
                    y = dense[row["precision"]] / hot_us(row) if over_dense else hot_us(row)
                    values[zeros_of(row)].append(y)
            points = sorted((100 * zeros, geomean(ys)) for zeros, ys in values.items())
            axis.plot(*zip(*points), ms=5, label=shown(label), **look[label])
        if over_dense:
            axis.axhline(1, color=INK, lw=1)
        plain_log(axis)
        _, family, height, width, n, _ = key
        family = "" if family == "files" else shown(re.sub(r"^[^?]*\?", "", family)) + "\n"
        axis.set_title(f"{family}{height} × {width}, N = {n}")
        axis.set_xlabel("zeros of A, %")
    axes[0].set_ylabel("speed-up over cuBLAS, densest A" if over_dense else "hot time, µs")
    if over_dense:
        notes.append(
            "Divided by dense cuBLAS of the same precision on the densest matrix of the shape."
        )
    title = (
        "Time over density" if not over_dense else "Speed-up over dense multiplication, by density"
    )
    return finish(figure, axes, results, drawn, title, dict.fromkeys(notes))
