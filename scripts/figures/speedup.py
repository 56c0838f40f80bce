"""Speed-up over a baseline: its distribution, and matrix by matrix."""

from collections import defaultdict

from command_line import numbered
from result_data import geomean

from . import BASELINES
from .style import (
    GRID,
    INK,
    MAX_PANELS,
    NAME_LENGTH,
    SHORT_NAME,
    SOFT,
    WIDTH,
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

MOST_NAMED = 110  # matrices whose names fit on a page; beyond that their groups stand for them
ROW_INCHES = 0.125  # height of a named matrix
LEAST = 0.1  # speed-up: the axis does not go below, so that the kernels in question fill it


def comparable(results, baseline):
    """Verified rows that have the speed-up, without the series that it divides by."""
    rows = [row for row in results.ranked() if row["speedup"][baseline]]
    itself = {row["label"] for row in rows}
    itself -= {row["label"] for row in rows if row["speedup"][baseline] != 1}
    rows = [row for row in rows if row["label"] not in itself]
    if not rows:
        raise Missing(f"no speed-up over {BASELINES[baseline]}")
    return to_draw(results, rows)


def default_baseline(results):
    """The first that some row of the run is divided by; the titles name it."""
    rows = results.ranked()
    first = next(iter(BASELINES))
    return next((name for name in BASELINES if any(r["speedup"][name] for r in rows)), first)


def chosen_ns(rows):
    """N of the panels, spread over those measured, and a sentence on the others."""
    ns = sorted({row["n"] for row in rows})
    if len(ns) <= MAX_PANELS:
        return ns, ""
    kept = [ns[i * (len(ns) - 1) // (MAX_PANELS - 1)] for i in range(MAX_PANELS)]
    others = ", ".join(str(n) for n in ns if n not in kept)
    return kept, f"Not shown: N = {others}."


def best_series(results, rows, baseline):
    """(labels to show, a sentence on those left out)."""
    ns = {row["n"] for row in rows}
    contested = results.contested()
    wins = wins_of({case: group for case, group in contested.items() if group[0]["n"] in ns})
    labels, others = choose_series(
        rows, wins, lambda g: geomean(r["speedup"][baseline] for r in g)
    )
    rule = "fastest in the fewest cases, then of the least speed-up"
    return labels, left_out(with_wins(others, wins), rule)


def speedup_distribution(results, baseline):
    """Each series sorted on its own: what share of its cases reaches which speed-up."""
    rows = comparable(results, baseline)
    ns, note = chosen_ns(rows)
    look = styles(results)
    figure, axes = panels(len(ns), sharey=True)
    rows = [row for row in rows if row["n"] in ns]
    labels, others = best_series(results, rows, baseline)
    means = {}
    for axis, n in zip(axes, ns):
        for label in labels:
            values = sorted(
                r["speedup"][baseline] for r in rows if r["label"] == label and r["n"] == n
            )
            if not values:
                continue
            means.setdefault(
                label, geomean(r["speedup"][baseline] for r in rows if r["label"] == label)
            )
            places = [100 * (i + 0.5) / len(values) for i in range(len(values))]
            axis.plot(
                places, values, label=f"{shown(label)} ({means[label]:.2f}×)", ms=4.5,
                markevery=max(1, len(values) // 9), **look[label],
            )  # fmt: skip
        axis.axhline(1, color=INK, lw=1)
        axis.set(title=f"N = {n}", xlim=(0, 100), xlabel="cases, %, slowest first")
    axes[0].set_ylim(max(LEAST, axes[0].get_ylim()[0]), None)
    plain_log(axes[0])
    axes[0].set_ylabel("speed-up, hot")
    notes = [note, "In brackets: the geometric mean over all cases shown."]
    notes += [below_axis(rows, labels, baseline), others]
    title = f"Speed-up over {BASELINES[baseline]}: distribution over the matrices"
    return finish(figure, axes, results, rows, title, notes, columns=3)


def below_axis(rows, labels, baseline):
    """A sentence on the points that the axis cuts off."""
    cut = defaultdict(int)
    for row in rows:
        if row["label"] in labels and row["speedup"][baseline] < LEAST:
            cut[row["label"]] += 1
    points = ", ".join(f"{label} {count}" for label, count in sorted(cut.items()))
    return f"Cases below {LEAST}, off the axis: {points}." if cut else ""


def by_group_then_best(rows, baseline):
    """[(group, [matrix names by their best speed-up])], the groups in order of theirs."""
    best, group_of = defaultdict(float), {}
    for row in rows:
        name = row["matrix"]["name"]
        best[name] = max(best[name], row["speedup"][baseline])
        group_of[name] = row["group"]
    groups = defaultdict(list)
    for name in sorted(best, key=best.get):
        groups[group_of[name]].append(name)
    return sorted(groups.items(), key=lambda item: geomean(best[name] for name in item[1]))


def speedup_by_matrix(results, baseline):
    """One line per matrix, one point per series."""
    rows = comparable(results, baseline)
    ns, note = chosen_ns(rows)
    rows = [row for row in rows if row["n"] in ns]
    labels, others = best_series(results, rows, baseline)
    groups = by_group_then_best(rows, baseline)
    count = sum(len(names) for _, names in groups)
    by_name = count <= MOST_NAMED
    # From below: the matrices of a group, then its heading.
    place, ticks, headings, height = {}, [], [], 0
    for group, names in groups:
        for name in names if by_name else [group]:
            place[name] = height
            ticks.append((height, shown(name, NAME_LENGTH.get(len(ns), SHORT_NAME))))
            height += 1
        if by_name:
            headings.append((height - 0.15, shown(f"{group}: {len(names)}")))
            height += 1.4
    figure, axes = panels(
        len(ns), height=max(3.0, 1.1 + ROW_INCHES * height), width=WIDTH, sharey=True
    )
    look = styles(results)
    for axis, n in zip(axes, ns):
        for over, label in enumerate(labels):
            values = defaultdict(list)
            for row in rows:
                if row["n"] == n and row["label"] == label:
                    values[place[row["matrix"]["name"] if by_name else row["group"]]].append(
                        row["speedup"][baseline]
                    )
            axis.plot(
                [geomean(v) for v in values.values()], list(values), ms=4.2, alpha=0.9,
                zorder=3 - over / len(labels), label=shown(label), **{**look[label], "ls": ""},
            )  # fmt: skip
        axis.axvline(1, color=INK, lw=1)
        axis.set_xlim(max(LEAST, axis.get_xlim()[0]), None)
        plain_log(axis, "x")
        axis.set(
            title=f"N = {n}",
            xlabel="speed-up, hot",
            ylim=(-0.8, height - 0.4 if by_name else height),
        )
        axis.grid(axis="y", color=GRID, lw=0.4)
        for at, _ in headings:
            axis.axhline(at - 0.45, color=SOFT, lw=0.4)
    axes[0].set_yticks([at for at, _ in ticks], [name for _, name in ticks], fontsize=7)
    for at, heading in headings:
        axes[0].annotate(
            heading, (0, at), xycoords=("axes fraction", "data"), xytext=(-4, 0),
            textcoords="offset points", ha="right", va="center", fontsize=7.5, fontweight="bold",
        )  # fmt: skip
    notes = [note, below_axis(rows, labels, baseline), others]
    if not by_name:
        notes.append(f"{numbered(count, 'matrix', 'matrices')}: each point is the geometric mean of a group.")
    title = f"Speed-up over {BASELINES[baseline]}, matrix by matrix"
    return finish(figure, axes, results, rows, title, notes)
