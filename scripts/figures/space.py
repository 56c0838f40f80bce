"""Space of the formats."""

from collections import defaultdict

from result_data import median

from .style import (
    INK,
    MARKERS,
    MAX_PANELS,
    MAX_SERIES,
    Missing,
    colour_of,
    finish,
    left_out,
    listed,
    panels,
    plain_log,
    shown,
    to_draw,
)


STRETCH = 10  # times the height of nine points in ten: higher ones would press the others together


def picks(row):
    """`auto` has the format of the kernel that it picked."""
    return row["kernel"].partition("?")[0] == "auto"


def series_of(row):
    reorder = f" [{row['reorder']}]" if row["reorder"] != "none" else ""
    binary = " (binary A)" if row["binary"] else ""
    return f"{row['format'].get('name')}: {row['kernel']}{reorder}{binary}"


def format_space(results, _):
    """Bytes of A per nonzero that each kernel reads, values and padding included; matrices by row length."""
    rows = [
        r for r in results.rows if r["format"] and r["matrix"]["nnz"] and r["format"].get("bytes")
    ]
    if not rows:
        raise Missing("no format statistics")
    of_auto = any(picks(row) for row in results.drawn(rows))
    rows = to_draw(results, [row for row in rows if not picks(row)])
    matrices_of = defaultdict(set)
    for row in rows:
        matrices_of[series_of(row)].add(row["matrix_key"])
    colours = {series_of(row): colour_of(row["kernel"], row["baseline"]) for row in rows}
    by_count = sorted(matrices_of, key=lambda name: (-len(matrices_of[name]), name))
    others = [f"{name} ({len(matrices_of[name])})" for name in by_count[MAX_SERIES:]]
    precisions = sorted({r["precision"] for r in rows})
    figure, axes = panels(min(len(precisions), MAX_PANELS), sharey=True)
    drawn = defaultdict(list)  # series -> the heights of its points
    for axis, precision in zip(axes, precisions):
        for i, name in enumerate(sorted(by_count[:MAX_SERIES])):
            points = defaultdict(list)
            for row in rows:
                if row["precision"] == precision and series_of(row) == name:
                    matrix = (row["matrix_key"], row["matrix"]["mean_row"])
                    points[matrix].append(row["format"]["bytes"] / row["matrix"]["nnz"])
            if points:
                sizes = [median(values) for values in points.values()]
                drawn[name] += sizes
                axis.plot(
                    [mean_row for _, mean_row in points], sizes, ls="", ms=5, alpha=0.85,
                    marker=MARKERS[i % len(MARKERS)], color=colours[name],
                    label=shown(f"{name} (median {median(sizes):.1f})" if len(axes) == 1 else name),
                )  # fmt: skip
        plain_log(axis, "x")
        plain_log(axis)
        axis.axhline(
            {"fp32": 8, "tf32": 8}.get(precision, 6), color=INK, lw=1, ls=(0, (4, 2)), marker="",
            label="a value and a 4-byte index",
        )  # fmt: skip
        axis.set(title=precision, xlabel="nonzeros per row, mean")
    axes[0].set_ylabel("bytes of A per nonzero")
    sizes = sorted(size for heights in drawn.values() for size in heights)
    top = STRETCH * sizes[int(0.9 * (len(sizes) - 1))]
    above = {name: sum(size > top for size in heights) for name, heights in drawn.items()}
    above = [f"{name} ({count})" for name, count in above.items() if count]
    if above:
        axes[0].set_ylim(top=top)
    left = precisions[MAX_PANELS:]
    notes = [
        "One point per matrix: the median over its rows.",
        "auto is not drawn: its format is that of the kernel that it picked." if of_auto else "",
        f"Left out: {listed(left)}." if left else "",
        left_out(others, "on the fewest matrices (in brackets)"),
        f"Points above the axis: {listed(above)}." if above else "",
    ]
    return finish(figure, axes, results, rows, "Space of the formats", notes, columns=3)
