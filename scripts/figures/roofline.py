"""Roofline (Williams, Waterman, Patterson, 2009): measured bandwidth and the device's compute roofs."""

from collections import defaultdict

from result_data import cold_us, hot_us

from .style import (
    INK,
    MAX_PANELS,
    Missing,
    finish,
    listed,
    panels,
    plain_log,
    shown,
    styles,
    to_draw,
)

# Floating-point operations of one multiprocessor per clock, dense: tensor cores, CUDA cores for fp32.
# NVIDIA's white papers on the H100 (989 TFLOP/s in fp16 at 132 SMs, 1.83 GHz) and the A100 (312 at 108, 1.41).
FLOPS_PER_CLOCK = {
    90: {"fp16": 4096, "bf16": 4096, "tf32": 2048, "fp32": 256, "fp64": 256},
    80: {"fp16": 2048, "bf16": 2048, "tf32": 1024, "fp32": 128, "fp64": 128},
}

MAKERS = ("cuSPARSE", "cuBLAS", "Eigen")  # cuSPARSELt is one of cuSPARSE
ROOF_COLOURS = (INK, "#8C2D8C", "#2A7F86", "#8A6D1D")


def clock_mhz(context):
    clocks = [context[when].get("sm_mhz") for when in ("clocks_before", "clocks_after")]
    return max((c for c in clocks if c), default=None)


def compute_roof(context, precision):
    """(TFLOP/s, how it is obtained), or (None, why there is none)."""
    device = context["device"]
    rate = FLOPS_PER_CLOCK.get(device["compute_capability"], {}).get(precision)
    mhz = clock_mhz(context)
    if not rate or not mhz or not device["sm_count"]:
        return None, "No compute roof: the device's rate or clock is not known."
    tflops = rate * device["sm_count"] * mhz / 1e6
    return (
        tflops,
        f"Compute roof: {device['sm_count']} SMs × {mhz} MHz × {rate} operations per clock.",
    )


def points_of(rows, time):
    points = []
    for row in rows:
        flops = 2 * row["matrix"]["nnz"] * row["n"]
        if time(row) and flops:
            points.append((flops / row["compulsory_bytes"], flops / time(row) / 1e6))
    return points


def maker(kernel):
    """Who wrote a baseline."""
    return next((name for name in MAKERS if kernel.startswith(name.lower())), kernel)


def draw_points(axis, rows, look, baselines):
    for row in rows:  # the step from hot to cold
        hot, cold = points_of([row], hot_us), points_of([row], cold_us)
        if hot and cold:
            axis.plot(*zip(hot[0], cold[0]), color="#C9CED4", lw=0.8, zorder=1)
    own = defaultdict(list)
    for row in rows:
        own["" if row["baseline"] else row["label"]].append(row)
    for label, group in sorted(own.items()):
        style = {k: v for k, v in look[label].items() if k != "ls"} if label else {}
        style = style or {"color": "#8A8F95", "marker": "x"}
        name = f"own: {label}" if label else baselines
        axis.scatter(
            *zip(*points_of(group, hot_us)), s=26 if label else 20, linewidths=1, zorder=3,
            label=f"fastest {shown(name)}", **style,
        )  # fmt: skip


def rates_of(context):
    """What tells the roofs of one run from those of another."""
    device = context["device"]["name"]
    return device, f"{context['copy_gb_per_s']:.2g}", clock_mhz(context)


def draw_roofs(axis, context, ends, precision, colour, named):
    """The roofs have their rates beside them or, named, in the legend."""
    bandwidth = context["copy_gb_per_s"] / 1e3  # TB/s
    rate = f"{bandwidth:.2f} TB/s" if bandwidth >= 1 else f"{1e3 * bandwidth:.3g} GB/s"
    roof, _ = compute_roof(context, precision)
    device = shown(context["device"]["name"])
    right = min(ends[1], roof / bandwidth) if roof else ends[1]
    if roof:
        peak = f"{roof:.0f} TFLOP/s {precision}"
        axis.plot(
            [right, ends[1]], [roof, roof], color=colour, ls=(0, (6, 2)), marker="",
            label=f"compute roof: {device}, {peak}" if named else "compute roof (peak at the clock of the run)",
        )  # fmt: skip
        if not named:
            axis.annotate(
                peak, (ends[1], roof), xytext=(0, 4), textcoords="offset points", ha="right", fontsize=8
            )
    axis.plot(
        [ends[0], right], [ends[0] * bandwidth, right * bandwidth], color=colour, ls="-", marker="",
        label=f"memory roof (copy): {device}, {rate}" if named else "memory roof (measured copy)",
    )  # fmt: skip
    if not named:
        middle = (ends[0] * right) ** 0.5
        axis.annotate(
            rate, (middle, middle * bandwidth), xytext=(-4, 5), textcoords="offset points", ha="right",
            fontsize=8,
        )  # fmt: skip


def roofline(results, _):
    """The fastest own kernel and the fastest baseline of every case, against the roofs."""
    fastest = {}
    for case, rows in results.contested().items():
        for row in rows:
            bandwidth = results.documents[row["run"]]["context"]["copy_gb_per_s"]
            if row["compulsory_bytes"] and bandwidth and points_of([row], hot_us):
                key = (case, row["baseline"])
                if key not in fastest or hot_us(row) < hot_us(fastest[key]):
                    fastest[key] = row
    if not fastest:
        raise Missing("no nonzeros, no compulsory bytes or no measured bandwidth")
    best = defaultdict(list)
    for row in to_draw(results, fastest.values()):
        best[row["precision"]].append(row)
    precisions = sorted(best, key=lambda p: -len(best[p]))
    figure, axes = panels(min(len(precisions), MAX_PANELS), height=4.3)
    look, notes = styles(results), []
    drawn = [row for precision in precisions[:MAX_PANELS] for row in best[precision]]
    # Runs of one device at the same rates have one roof.
    first_of, context_of = {}, {}
    for run in sorted({row["run"] for row in drawn}):
        context = results.documents[run]["context"]
        context_of[run] = first_of.setdefault(rates_of(context), context)
    contexts = list(first_of.values())
    makers = sorted({maker(row["kernel"]) for row in drawn if row["baseline"]})
    for axis, precision in zip(axes, precisions):
        rows = best[precision]
        draw_points(axis, rows, look, " or ".join(makers))
        intensities = [x for x, _ in points_of(rows, hot_us)]
        ends = [min(intensities) / 1.6, max(intensities) * 1.6]
        here = {contexts.index(context_of[row["run"]]) for row in rows}
        for place in sorted(here):
            roof, note = compute_roof(contexts[place], precision)
            named = f"{contexts[place]['device']['name']}: " if len(contexts) > 1 else ""
            notes.append(named + note)
            if roof:
                ends[1] = max(ends[1], 2e3 * roof / contexts[place]["copy_gb_per_s"])
        for place in sorted(here):
            colour = ROOF_COLOURS[place % len(ROOF_COLOURS)]
            draw_roofs(axis, contexts[place], ends, precision, colour, len(contexts) > 1)
        axis.set_xlim(*ends)
        plain_log(axis, "x")
        plain_log(axis)
        axis.set_title(f"{precision} in")
        lines = "\n" if len(axes) > 2 else " "
        axis.set_xlabel(f"useful operations{lines}per compulsory byte")
    if len(precisions) > MAX_PANELS:
        notes.append(f"Left out: {listed(precisions[MAX_PANELS:])}.")
    kinds = {context["device"]["kind"] for context in contexts}
    caches = ["the L2 cache"] if kinds != {"host"} else []
    caches += ["the CPU's caches"] if "host" in kinds else []
    notes.append(
        "Markers: hot; a line leads from each to cold. Hot points lie above the memory roof where the "
        f"operands stay in {' or '.join(caches)}."
    )
    axes[0].set_ylabel("TFLOP/s, useful operations")
    title = "Roofline: the fastest own kernel and the fastest baseline of each case"
    return finish(figure, axes, results, drawn, title, dict.fromkeys(notes), columns=3)
