"""Roofline (Williams, Waterman, Patterson, 2009): measured bandwidth and the device's compute roofs."""

from collections import defaultdict

from result_data import cold_us, hot_us

from .style import INK, MAX_PANELS, Missing, finish, listed, panels, plain_log, shown, styles

# Floating-point operations of one multiprocessor per clock, dense: tensor cores, CUDA cores for fp32.
# NVIDIA's white papers on the H100 (989 TFLOP/s in fp16 at 132 SMs, 1.83 GHz) and the A100 (312 at 108, 1.41).
FLOPS_PER_CLOCK = {
    90: {"fp16": 4096, "bf16": 4096, "tf32": 2048, "fp32": 256},
    80: {"fp16": 2048, "bf16": 2048, "tf32": 1024, "fp32": 128},
}


def compute_roof(context, precision):
    """(TFLOP/s, how it is obtained), or (None, why there is none)."""
    device = context["device"]
    rate = FLOPS_PER_CLOCK.get(device["compute_capability"], {}).get(precision)
    clocks = [context[when].get("sm_mhz") for when in ("clocks_before", "clocks_after")]
    mhz = max((c for c in clocks if c), default=None)
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


def roofline(results, _):
    """The fastest own kernel and the fastest baseline of every case, against the roofs."""
    best = defaultdict(dict)
    for case, rows in results.contested().items():
        for row in rows:
            bandwidth = results.documents[row["run"]]["context"]["copy_gb_per_s"]
            if row["compulsory_bytes"] and bandwidth and points_of([row], hot_us):
                of_precision = best[row["precision"]]
                key = (case, row["baseline"])
                if key not in of_precision or hot_us(row) < hot_us(of_precision[key]):
                    of_precision[key] = row
    if not best:
        raise Missing("no nonzeros, no compulsory bytes or no measured bandwidth")
    precisions = sorted(best, key=lambda p: -len(best[p]))
    figure, axes = panels(min(len(precisions), MAX_PANELS), height=4.3)
    look, drawn, notes = styles(results), [], []
    for axis, precision in zip(axes, precisions):
        rows = list(best[precision].values())
        drawn += rows
        context = results.documents[rows[0]["run"]]["context"]
        intensities = [x for x, _ in points_of(rows, hot_us)]
        for row in rows:  # the fall from hot to cold
            hot, cold = points_of([row], hot_us), points_of([row], cold_us)
            if hot and cold:
                axis.plot(*zip(hot[0], cold[0]), color="#C9CED4", lw=0.8, zorder=1)
        own = defaultdict(list)
        for row in rows:
            own["" if row["baseline"] else row["label"]].append(row)
        for label, group in sorted(own.items()):
            style = {k: v for k, v in look[label].items() if k != "ls"} if label else {}
            style = style or {"color": "#8A8F95", "marker": "x"}
            axis.scatter(
                *zip(*points_of(group, hot_us)), s=26 if label else 20, linewidths=1, zorder=3,
                label=f"fastest own: {shown(label)}" if label else "fastest cuSPARSE or cuBLAS", **style,
            )  # fmt: skip
        bandwidth = context["copy_gb_per_s"] / 1e3  # TB/s
        roof, note = compute_roof(context, precision)
        notes.append(note)
        ends = [min(intensities) / 1.6, max(intensities) * 1.6]
        if roof:
            ends[1] = max(ends[1], 2 * roof / bandwidth)
            axis.plot(
                [roof / bandwidth, ends[1]], [roof, roof], color=INK, ls=(0, (6, 2)), marker="",
                label="compute roof (peak at the clock of the run)",
            )  # fmt: skip
            axis.annotate(
                f"{roof:.0f} TFLOP/s {precision}", (ends[1], roof), xytext=(0, 4),
                textcoords="offset points", ha="right", fontsize=8,
            )  # fmt: skip
        right = min(ends[1], roof / bandwidth) if roof else ends[1]
        axis.plot(
            [ends[0], right], [ends[0] * bandwidth, right * bandwidth], color=INK, ls="-", marker="",
            label="memory roof (measured copy)",
        )  # fmt: skip
        middle = (ends[0] * right) ** 0.5
        axis.annotate(
            f"{bandwidth:.2f} TB/s" if bandwidth >= 1 else f"{1e3 * bandwidth:.3g} GB/s", (middle, middle * bandwidth), xytext=(-4, 5),
            textcoords="offset points", ha="right", fontsize=8,
        )  # fmt: skip
        axis.set_xlim(*ends)
        plain_log(axis, "x")
        plain_log(axis)
        axis.set_title(f"{precision} in")
        axis.set_xlabel("useful operations per compulsory byte")
    if len(precisions) > MAX_PANELS:
        notes.append(f"Left out: {listed(precisions[MAX_PANELS:])}.")
    notes.append(
        "Markers: hot; the line below each leads to cold. Hot points lie above the memory roof where the "
        "operands stay in the L2 cache."
    )
    axes[0].set_ylabel("TFLOP/s, useful operations")
    title = "Roofline: the fastest own kernel and the fastest baseline of each case"
    return finish(figure, axes, results, drawn, title, dict.fromkeys(notes), columns=3)
