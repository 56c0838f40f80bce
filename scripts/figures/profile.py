"""Performance profile (Dolan and Moré, 2002)."""

from collections import defaultdict

from matplotlib import ticker

from command_line import numbered
from result_data import geomean, hot_us

from .style import (
    MAX_PANELS,
    Missing,
    choose_series,
    finish,
    left_out,
    panels,
    plain_log,
    shown,
    styles,
    to_draw,
    wins_of,
    with_wins,
)

LARGEST_FACTOR = 20  # of the axis; slower than that is far behind by any account


def performance_profile(results, _):
    """Share of cases in which a series is within a factor of the fastest of its precision."""
    by_type = defaultdict(dict)
    for case, rows in results.contested().items():
        by_type[rows[0]["precision"], rows[0]["c_type"]][case] = rows
    for kind, cases in list(by_type.items()):
        if len({row["label"] for rows in cases.values() for row in rows}) < 2:
            del by_type[kind]
    if not by_type:
        raise Missing("no case with two verified kernels")
    rows_of = defaultdict(list)
    for row in to_draw(results, [r for cases in by_type.values() for g in cases.values() for r in g]):
        rows_of[row["precision"], row["c_type"]].append(row)
    types = sorted(rows_of, key=lambda t: -len(by_type[t]))
    look = styles(results)
    figure, axes = panels(min(len(types), MAX_PANELS))
    notes, drawn = [], []
    for axis, kind in zip(axes, types):
        cases, rows = by_type[kind], rows_of[kind]
        drawn += rows
        fastest = {case: hot_us(min(group, key=hot_us)) for case, group in cases.items()}
        ratios = defaultdict(list)
        for case, group in cases.items():
            for row in group:
                ratios[row["label"]].append(hot_us(row) / fastest[case])
        wins = wins_of(cases)
        labels, others = choose_series(
            rows, wins, lambda group: len(group) / geomean(ratios[group[0]["label"]])
        )
        of_panel = f" of {kind[0]} in, {kind[1]} out" if len(axes) > 1 else ""
        rule = "fastest in the fewest cases, then of the fewest cases and the largest factors"
        notes.append(left_out(with_wins(others, wins), rule, of_panel))
        for label in labels:
            steps = sorted(ratios[label])
            heights = [(i + 1) / len(cases) for i in range(len(steps))]
            name = (
                f"{shown(label)} (fastest in {wins.get(label, 0)})"
                if len(axes) == 1
                else shown(label)
            )
            axis.step(
                [1, *steps, 10 * LARGEST_FACTOR], [0, *heights, heights[-1]],
                where="post", label=name, markevery=(0.03, 0.11), ms=4.5, **look[label],
            )  # fmt: skip
        axis.set(xlim=(1, LARGEST_FACTOR), ylim=(0, 1.02), xlabel="time / time of the fastest")
        plain_log(axis, "x")
        axis.set_title(f"{kind[0]} in, {kind[1]} out: {numbered(len(cases), 'case')}")
        axis.yaxis.set_major_formatter(ticker.PercentFormatter(1, decimals=0))
    if len(types) > MAX_PANELS:
        notes.append(
            f"Left out: {', '.join(' in, '.join(t) + ' out' for t in types[MAX_PANELS:])}."
        )
    axes[0].set_ylabel("cases within that factor")
    title = "Performance profile: hot time against the fastest verified kernel of each case"
    return finish(figure, axes, results, drawn, title, dict.fromkeys(notes), columns=3)
