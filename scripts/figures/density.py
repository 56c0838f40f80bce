"""Density curves: matrices of one generator and shape at several densities, and points of other files."""

import re
from collections import defaultdict

from command_line import numbered
from result_data import density, geomean, hot_us

from .style import (
    INK,
    MAX_PANELS,
    Missing,
    choose_series,
    finish,
    left_out,
    panels,
    plain_log,
    shown,
    styles,
    wins_of,
    with_wins,
)

VARYING = (
    "sparsity",
    "density",
    "seed",
    "pattern",
)  # options of a generator that make no other family


FILES = "files"


def zeros_of(row):
    """The share of zeros that a point of the curve is at. Matrices of one share differ little, by their
    seeds, so it has three digits of the smaller of the two: zeros or nonzeros."""
    full = density(row)
    return 1 - float(f"{full:.3g}") if full < 0.5 else float(f"{1 - full:.3g}")


def shape_of(row):
    return [row["matrix"]["rows"], row["matrix"]["cols"], row["n"], row["layout"]]


def family_of(row):
    """The generator with its other options; files are not related, whatever their shape."""
    source = row["matrix"]["source"]
    if not source.startswith("gen:"):
        return FILES
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


def points_of(rows, by_matrix, dense):
    """(zeros in percent, speed-up over `dense`, which has a time for each precision, or else the time) of one
    series. Generated matrices of one share differ by their seeds only, and are one point."""
    values = defaultdict(list)
    for row in rows:
        y = dense[row["precision"]] / hot_us(row) if dense else hot_us(row)
        values[zeros_of(row), row["matrix_key"] if by_matrix else ""].append(y)
    return sorted((100 * zeros, geomean(ys)) for (zeros, _), ys in values.items())


def density_curves(results, _):
    sweeps = defaultdict(list)
    for row in results.ranked():
        sweeps[row["run"], family_of(row), *shape_of(row)].append(row)
    densities = {key: len(set(map(zeros_of, results.drawn(rows)))) for key, rows in sweeps.items()}
    chosen = [key for key in sweeps if densities[key] >= 3]
    chosen.sort(key=lambda key: (key[1] == FILES, -densities[key]))  # related matrices first
    if not chosen:
        raise Missing("no shape with three densities")
    notes = [
        f"Left out: {numbered(len(chosen) - MAX_PANELS, 'more shape')}." if len(chosen) > MAX_PANELS else ""
    ]
    chosen = chosen[:MAX_PANELS]
    dense_of = {key: unpruned_dense(results, key) for key in chosen}
    rows_of = {
        key: [row for row in results.drawn(sweeps[key]) if row["precision"] in dense_of[key]]
        for key in chosen
    }
    over_dense = all(rows_of.values())
    if over_dense:
        notes.append(
            "Divided by dense cuBLAS of the same precision on the densest matrix of the shape."
        )
    else:
        rows_of = {key: results.drawn(sweeps[key]) for key in chosen}
    if any(family == FILES for _, family, *_ in chosen):
        notes.append("Points without lines are files, related by nothing but their shape.")
    look = styles(results)
    figure, axes = panels(len(chosen), sharey=over_dense)
    not_drawn = []
    for axis, key in zip(axes, chosen):
        _, family, height, width, n, _ = key
        rows, dense = rows_of[key], dense_of[key]
        by_matrix = defaultdict(list)
        for row in sweeps[key]:
            by_matrix[row["matrix_key"], row["precision"]].append(row)
        wins = wins_of(by_matrix)
        labels, others = choose_series(rows, wins, lambda g: 1 / geomean(map(hot_us, g)))
        size = f"{height} × {width}, N = {n}"
        heading = [size] if family == FILES else [shown(re.sub(r"^[^?]*\?", "", family)), size]
        not_drawn += with_wins(others, wins) if len(axes) == 1 else others
        for label in labels:
            of_series = [row for row in rows if row["label"] == label]
            points = points_of(of_series, family == FILES, dense if over_dense else None)
            style = {**look[label], "ls": ""} if family == FILES else look[label]
            axis.plot(*zip(*points), ms=5, label=shown(label), **style)
        if over_dense:
            axis.axhline(1, color=INK, lw=1)
        plain_log(axis)
        axis.set_title("\n".join(heading))
        axis.set_xlabel("zeros of A, %")
    rule = "fastest on the fewest matrices, then slowest"
    notes.append(left_out(not_drawn, rule, " of a panel or several" if len(axes) > 1 else ""))
    axes[0].set_ylabel("speed-up over cuBLAS, densest A" if over_dense else "hot time, µs")
    title = (
        "Time over density" if not over_dense else "Speed-up over dense multiplication, by density"
    )
    drawn = [row for rows in rows_of.values() for row in rows]
    return finish(figure, axes, results, drawn, title, dict.fromkeys(notes))
