"""Space of the formats."""

from collections import defaultdict

from result_data import median

from .style import (
    COLOURS,
    INK,
    MARKERS,
    MAX_PANELS,
    Missing,
    finish,
    listed,
    panels,
    plain_log,
    shown,
)


def format_space(results, _):
    """Bytes of A per nonzero that each kernel reads, values and padding included; matrices by row length."""
    rows = [
        r for r in results.rows if r["format"] and r["matrix"]["nnz"] and r["format"].get("bytes")
    ]
    if not rows:
        raise Missing("no format statistics")
    precisions = sorted({r["precision"] for r in rows})
    names = sorted({str(r["format"].get("name")) for r in rows})
    figure, axes = panels(min(len(precisions), MAX_PANELS), sharey=True)
    for axis, precision in zip(axes, precisions):
        mine = [r for r in rows if r["precision"] == precision]
        for i, name in enumerate(names):
            points = defaultdict(list)
            for row in mine:
                if str(row["format"].get("name")) == name:
                    per_nonzero = row["format"]["bytes"] / row["matrix"]["nnz"]
                    points[row["matrix"]["mean_row"]].append(per_nonzero)
            if points:
                middle = median([v for values in points.values() for v in values])
                axis.plot(
                    list(points), [median(v) for v in points.values()], ls="", ms=5, alpha=0.85,
                    marker=MARKERS[i % len(MARKERS)], color=COLOURS[i % len(COLOURS)],
                    label=shown(f"{name} (median {middle:.1f})" if len(axes) == 1 else name),
                )  # fmt: skip
        plain_log(axis, "x")
        plain_log(axis)
        axis.axhline(
            {"fp32": 8, "tf32": 8}.get(precision, 6), color=INK, lw=1, ls=(0, (4, 2)), marker="",
            label="a value and a 4-byte index",
        )  # fmt: skip
        axis.set(title=precision, xlabel="nonzeros per row, mean")
    axes[0].set_ylabel("bytes of A per nonzero")
    left = precisions[MAX_PANELS:]
    notes = [f"Left out: {listed(left)}." if left else ""]
    return finish(figure, axes, results, rows, "Space of the formats", notes)
