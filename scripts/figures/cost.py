"""When preparation pays: time in all over the number of calls, and preparation against what it saves."""

from collections import defaultdict

from matplotlib import ticker

from command_line import numbered
from result_data import geomean, hot_us, number, preparation_ms
from result_series import total_us

from .style import (
    INK,
    Missing,
    choose_series,
    finish,
    left_out,
    panels,
    plain_log,
    shown,
    styles,
    to_draw,
)

CALLS = [10 ** (i / 8) for i in range(0, 49)]  # 1 to a million, eight points per factor of ten
DEAREST = 50  # times the cheapest: end of the axis
ISO_CALLS = (10, 1_000, 100_000)
ON_THE_HOST = ("cpu_csr", "eigen_csr")  # kernels that also run on the host of a GPU
NOTHING_SAVED_US = 0.05  # below every saving that matters: where "saves nothing" is drawn


def cases_with_choice(results):
    cases = {case: rows for case, rows in results.contested().items() if len(rows) > 1}
    if not any(preparation_ms(row) for rows in cases.values() for row in rows):
        raise Missing("no preparation times of cases with two verified kernels")
    return cases


def measured_calls(cases):
    """The numbers of calls that every row with a curve of --calls-curve has; none where they are fewer
    than two."""
    curves = [set(row["calls_us"]) for rows in cases.values() for row in rows if row["calls_us"]]
    common = set.intersection(*curves) if curves else set()
    return sorted(map(int, common)) if len(common) > 1 else []


def measured_us(row, calls):
    return number(row["calls_us"][str(calls)])


def cost_over_calls(results, _):
    """Left: which kernel is cheapest. Right: what each costs in all, over the cheapest. Measured where rows
    have it, else preparation plus so many times the median."""
    cases = cases_with_choice(results)
    points, total, measured = CALLS, total_us, measured_calls(cases)
    if measured:
        points, total = measured, measured_us
        cases = {case: [row for row in rows if row["calls_us"]] for case, rows in cases.items()}
        cases = {case: rows for case, rows in cases.items() if rows}
    share = defaultdict(lambda: [0.0] * len(points))
    over = defaultdict(lambda: [[] for _ in points])
    for rows in cases.values():
        for i, calls in enumerate(points):
            first = min(rows, key=lambda row: total(row, calls))
            share[first["label"]][i] += 1 / len(cases)
            for row in rows:
                over[row["label"]][i].append(total(row, calls) / total(first, calls))
    rows = to_draw(results, [row for group in cases.values() for row in group])
    ever = {label: max(values) for label, values in share.items()}
    means = {label: [geomean(values) for values in lists] for label, lists in over.items()}
    counts = {label: len(lists[0]) for label, lists in over.items()}
    labels, others = choose_series(rows, ever, lambda group: 1 / min(means[group[0]["label"]]))
    others = [
        f"{label} (at most {100 * ever[label]:.1f} %)" if label in ever else label for label in others
    ]
    rule = "cheapest in the smallest share of the cases, then farthest from the cheapest"
    look = styles(results)
    figure, axes = panels(2, height=3.9)
    for label in labels:
        name = f"{shown(label)} ({counts[label]} of {len(cases)})"
        every = 1 if measured else (labels.index(label) % 4, 4)
        style = {**look[label], "ms": 4.5, "markevery": every}
        axes[1].plot(points, means[label], label=name, **style)
        if label in share:
            axes[0].plot(points, share[label], label=name, **style)
    for axis in axes:
        axis.set(xlim=(points[0], points[-1]), xlabel="calls with the same A")
        plain_log(axis, "x")
    axes[0].set(ylim=(0, None), ylabel="cases", title="cheapest in all, preparation included")
    axes[0].yaxis.set_major_formatter(ticker.PercentFormatter(1, decimals=0))
    axes[1].set_ylim(0.97, DEAREST)
    plain_log(axes[1])
    axes[1].set(ylabel="time in all / cheapest", title="geometric mean over the cases it ran in")
    notes = [
        "In brackets: the cases that a kernel ran in, of all. Loading the file is not counted.",
        "Each point is measured: preparation and so many calls, from a flushed cache." if measured else "",
        left_out(others, rule),
    ]
    title = "Cost over calls: preparation plus that many products" + (", measured" if measured else "")
    return finish(figure, axes, results, rows, title, notes, columns=3)


def without_preparation(rows):
    """The row that a user would take who prepares nothing: the cheapest baseline for a single call. The
    host's own serve where the GPU has none, kernels where there is no baseline."""
    baselines = [row for row in rows if row["baseline"]]
    on_device = [row for row in baselines if row["kernel"] not in ON_THE_HOST]
    return min(on_device or baselines or rows, key=lambda row: total_us(row, 1))


def draw_equal_calls(axis):
    """A line for each number of calls after which preparation has paid. The limits of the axes stay."""
    xlim, ylim = axis.get_xlim(), axis.get_ylim()
    for calls in ISO_CALLS:
        ends = [1e3 * x / calls for x in xlim]
        axis.plot(xlim, ends, color=INK, lw=0.9, ls=(0, (2, 2)), marker="")
        # The name stands where the line leaves the figure.
        x = min(xlim[1], calls * ylim[1] / 1e3)
        if x > xlim[0] and 1e3 * x / calls > ylim[0]:
            axis.annotate(
                f"pays at {calls:,} calls".replace(",", "\u202f"), (x, 1e3 * x / calls), xytext=(-6, -4),
                textcoords="offset points", ha="right", va="top", fontsize=8,
            )  # fmt: skip
    axis.set(xlim=xlim, ylim=ylim)


def preparation_gain(results, _):
    """What a kernel's preparation takes against what it saves in every call."""
    cases = cases_with_choice(results)
    saved, nothing, drawn = defaultdict(list), defaultdict(int), []
    without_baseline, of_gpu = 0, False
    for rows in cases.values():
        plain = without_preparation(rows)
        without_baseline += not plain["baseline"]
        of_gpu |= plain["kernel"] not in ON_THE_HOST and any(r["kernel"] in ON_THE_HOST for r in rows)
        for row in results.drawn(rows):
            extra = preparation_ms(row) - preparation_ms(plain)
            if row is plain or extra <= 0:
                continue
            drawn.append(row)
            gain = hot_us(plain) - hot_us(row)
            if gain > NOTHING_SAVED_US:
                saved[row["label"]].append((extra, gain))
            else:
                nothing[row["label"]] += 1
    if not saved:
        raise Missing("no kernel whose preparation saves time per call")
    labels, others = choose_series(
        drawn, {}, lambda group: float(len(saved.get(group[0]["label"], ()))) or None
    )
    others = [f"{label} ({len(saved[label])})" for label in others]
    look = styles(results)
    figure, (axis,) = panels(1, height=4.6)
    for label in labels:
        never = f", {nothing[label]} save nothing" if nothing[label] else ""
        name = f"{shown(label)} ({len(saved[label])} save{never})"
        style = {**look[label], "ls": ""}
        axis.plot(*zip(*saved[label]), ms=4.6, alpha=0.8, label=name, **style)
    plain_log(axis, "x")
    plain_log(axis)
    draw_equal_calls(axis)
    axis.set(xlabel="preparation beyond the plain call's, ms", ylabel="saved per call, µs")
    only_never = [f"{label} ({count})" for label, count in nothing.items() if label not in saved]
    notes = [
        f"Against the baseline {'on the GPU ' if of_gpu else ''}that is cheapest for a single call. Above a "
        "dashed line, preparation is paid back in fewer calls.",
        f"{numbered(without_baseline, 'case')} without a baseline: against the kernel that is cheapest for a single call."
        if without_baseline
        else "",
        f"Not drawn, never save: {', '.join(only_never)}." if only_never else "",
        left_out(others, "save in the fewest cases (in brackets)"),
    ]
    title = "Preparation against gain, case by case"
    return finish(figure, [axis], results, drawn, title, notes, columns=2)
