"""RSH-SpMM (arXiv 2603.08734): Figures 13 to 17.

Published values are those of the paper's text; what a figure shows and no sentence names is None.
"""

from command_line import numbered
from result_data import geomean, hot_us, median, number

from .common import Line, Target, mean, options_of, plugin_system, run_command, verified

RSH = "RSH-SpMM (arXiv 2603.08734)"
RSH_GPUS = "NVIDIA RTX 4090 and RTX 3090"
MEANS = "Means here are geometric over the matrices; the paper says “average”."
NINE = (
    "com-amazon",
    "ddi",
    "DD",
    "amazon0505",
    "amazon0601",
    "Yeast",
    "OVCAR-8H",
    "YeastH",
    "web-BerkStan",
)


def paper_graphs(names):
    """How the matrices at hand relate to those of the RSH-SpMM paper."""
    held = [name for name in NINE if name.lower() in {n.lower() for n in names}]
    text = f"Of the paper's nine graphs {len(held)} at hand" + (
        f" ({', '.join(held)})" if held else ""
    )
    return f"{text}; measured on {numbered(len(names), 'matrix', 'matrices')}: {', '.join(names[:9])}" + (
        f" and {len(names) - 9} more." if len(names) > 9 else "."
    )


# ---- RSH-SpMM, Figures 13 and 14: structure, no GPU --------------------------------------------


def formats_of(inspected):
    """Formats of every matrix in its own order."""
    return [matrix["reorderings"][0]["formats"] for matrix in inspected]


def space(inspected):
    formats = formats_of(inspected)

    def ratio(over, under):
        pairs = [
            (f[over]["index_bytes"], f[under]["index_bytes"])
            for f in formats
            if {over, under} <= set(f)
        ]
        values = [a / b for a, b in pairs if b]
        return geomean(values), len(values)

    lines = []
    for what, over, under, published in (
        ("metadata: ME-TCF balanced / ME-TCF", "me_tcf_balanced", "me_tcf", 1.0724),
        ("metadata: BitTCF balanced / BitTCF", "bit_tcf_balanced", "bit_tcf", 1.0829),
        ("metadata: RS-Tile / ME-TCF balanced", "rs_tile", "me_tcf_balanced", None),
        ("metadata: RS-Tile / BitTCF balanced", "rs_tile", "bit_tcf_balanced", None),
    ):
        lines.append(Line(what, published, *ratio(over, under), 3))
    both = [ratio("rs_tile", name)[0] for name in ("me_tcf_balanced", "bit_tcf_balanced")]
    saving = geomean(both) if all(both) else None
    lines.append(Line("metadata: RS-Tile / both, mean", 1 - 0.1505, saving, len(formats), 3))
    for name in ("csr", "me_tcf", "me_tcf_balanced", "bit_tcf", "bit_tcf_balanced", "rs_tile"):
        values = [f[name]["fp16_over_coo"] for f in formats if name in f]
        lines.append(
            Line(f"space with fp16 values / COO: {name}", None, geomean(values), len(values), 3)
        )
    differs = [MEANS, "The paper's bars of space relative to COO have no numbers in its text."]
    return lines, [paper_graphs([matrix["name"] for matrix in inspected]), *differs]


def thresholds(inspected):
    swept = [matrix["reorderings"][0].get("threshold", []) for matrix in inspected]
    published = {0: (16.7, 174.0), 4: (19.5, 233.0)}
    lines = []
    for tau in range(9):
        found = [entry for entries in swept for entry in entries if entry["tau_nnz"] == tau]
        block, window = published.get(tau, (None, None))
        for what, value, key, digits in (
            ("nonzeros per TC block", block, "nnz_per_tile", 2),
            ("nonzeros per row window", window, "nnz_per_window", 1),
            ("share of nonzeros on CUDA cores", None, "residual_nnz_share", 4),
        ):
            average = mean if key == "residual_nnz_share" else geomean
            measured = average([entry[key] for entry in found])
            lines.append(Line(f"threshold {tau}: {what}", value, measured, len(found), digits))
    value = {line.what: line for line in lines}
    for what in ("nonzeros per TC block", "nonzeros per row window"):
        first, fourth = value[f"threshold 0: {what}"], value[f"threshold 4: {what}"]
        growth = fourth.measured / first.measured if first.measured and fourth.measured else None
        published_growth = fourth.published / first.published
        lines.append(Line(f"{what}: 4 over 0", published_growth, growth, fourth.cases))
    differs = [
        "Geometric means over the matrices, arithmetic ones of shares; the paper says “mean”. A matrix "
        "with one row of 93,000 nonzeros would outweigh all others in an arithmetic mean.",
        "Which rows leave a window is the overlap rule: the paper's printed rule makes every measure "
        "worse (docs/decisions/rsh.md).",
    ]
    return lines, [paper_graphs([matrix["name"] for matrix in inspected]), *differs]


# ---- RSH-SpMM, Figures 10 to 12: beside other systems ------------------------------------------

CUSPARSE = "cuSPARSE"


def system_of(row):
    """The system that a row is of; None for a kernel that is neither RSH nor in the comparison."""
    base, _ = options_of(row["kernel"])
    if base == "rsh" and row["precision"] == "fp16":
        return "RSH"
    if base == "cusparse_csr_default" and row["precision"] == "fp32":
        return CUSPARSE
    return plugin_system(base)


def systems(published):
    """Speed-ups of RSH in fp16 over each system, in the fastest of its kernels and precisions."""

    def evaluate(documents):
        least, precision = {}, {}
        for row in verified(documents):
            if (system := system_of(row)) is None or row["reorder"] != "none":
                continue
            case = (row["matrix"]["sha256"] or row["matrix"]["name"], row["n"])
            times = least.setdefault(system, {})
            if hot_us(row) < times.get(case, float("inf")):
                times[case] = hot_us(row)
                precision.setdefault(system, set()).add(row["precision"])
        own = least.pop("RSH", {})
        lines = []
        for system in dict.fromkeys([CUSPARSE, *published, *sorted(least)]):
            ratios = [us / own[case] for case, us in least.get(system, {}).items() if case in own]
            value = geomean(ratios)
            lines.append(Line(f"{system} / RSH", published.get(system), value, len(ratios)))
        rows = verified(documents)
        types = [f"{name} {', '.join(sorted(precision[name]))}" for name in sorted(least)]
        differs = [
            paper_graphs(sorted({row["matrix"]["name"] for row in rows})),
            n_values(rows),
            MEANS,
            f"RSH reads fp16; the others as they are fastest: {'; '.join(types)}." if types else "",
            "Systems without a measured value were not brought: --plugin LIB (docs/peers.md).",
        ]
        return lines, differs

    return evaluate


def beside_systems(matrices):
    return run_command(*matrices, "-n", "64:512:x2", "--precision", "fp16,tf32,fp32", "-k", "rsh,cusparse_csr_default",
                       "--no-baselines")  # fmt: skip


# ---- RSH-SpMM, Figures 15 to 17: on the device -------------------------------------------------


def counters(documents):
    rows = [row for row in verified(documents) if "profile_sm_throughput_pct" in row["metrics"]]
    kernel = "rsh" if any(row["kernel"] == "rsh" for row in rows) else None
    rows = [row for row in rows if kernel in (None, row["kernel"])]

    def values(name):
        return [number(row["metrics"].get(name)) for row in rows]

    sm, tensor = values("profile_sm_throughput_pct"), values("profile_tensor_pipe_pct")
    lines = [
        Line("SM throughput, median, %", 33.0, median(sm), len(rows), 1),
        Line("SM throughput of Acc-SpMM, median, %", 28.0, None, 0, 1),
        Line("tensor pipe utilisation, mean, %", 8.8, mean(tensor), len(rows), 1),
        Line("tensor pipe utilisation of Acc-SpMM, mean, %", 5.6, None, 0, 1),
    ]
    differs = [paper_graphs(sorted({row["matrix"]["name"] for row in rows})), n_values(rows)]
    differs.append(
        "Counters are of a cold launch: ncu flushes the caches. Acc-SpMM is not part of this program."
    )
    if rows and kernel is None:
        differs.append(
            f"Kernel {', '.join(sorted({row['kernel'] for row in rows}))} instead of rsh."
        )
    return lines, differs


def n_values(rows):
    ns = sorted({row["n"] for row in rows})
    return (
        f"N = {', '.join(map(str, ns))} here; the paper averages over 64, 128, 256 and 512."
        if ns
        else ""
    )


# Stage of the paper -> the ordering's options here, beside its published speed-up.
ORDERINGS = (
    ("Rabbit order", ("rabbit", {}), 0.87),
    ("TCA", ("tca", {}), 1.15),
    ("RSH, spanning forest", ("rsh", {"two_opt": "0", "isolation": "0"}), 1.19),
    ("RSH, + 2-opt", ("rsh", {"isolation": "0"}), 1.22),
    ("RSH, + isolated rows", ("rsh", {}), 1.25),
)


def reorderings(documents):
    hot = {}
    rows = [
        row
        for row in verified(documents)
        if row["kernel"].startswith("rsh?") and "natural" in row["kernel"]
    ]
    for row in rows:
        base, options = options_of(row["reorder"])
        case = (row["matrix"]["sha256"] or row["matrix"]["name"], row["n"], row["precision"])
        hot[case, base, tuple(sorted(options.items()))] = hot_us(row)
    lines, best = [], []
    for what, (base, options), published in ORDERINGS:
        key = (base, tuple(sorted(options.items())))
        ratios = [hot[case, "none", ()] / us for (case, *order), us in hot.items()
                  if tuple(order) == key and (case, "none", ()) in hot]  # fmt: skip
        lines.append(
            Line(f"kernel time without / with: {what}", published, geomean(ratios), len(ratios))
        )
        best = ratios
    lines.append(Line("the same, the best matrix", 1.7, max(best, default=None), len(best)))
    differs = [paper_graphs(sorted({row["matrix"]["name"] for row in rows})), n_values(rows), MEANS]
    return lines, differs


EPOCHS, LAYERS = 500, 6


def training(documents):
    rows = [
        row for row in verified(documents) if row["kernel"] == "rsh" and row["precision"] == "fp16"
    ]
    rows = [
        row for row in rows if row["n"] in (64, 256) and row["speedup"]["cusparse_default_fp32"]
    ]
    lines = []
    for n in (64, 256):
        ratios = [row["speedup"]["cusparse_default_fp32"] for row in rows if row["n"] == n]
        lines.append(
            Line(f"d = {n}: cuSPARSE / RSH, the products alone", None, geomean(ratios), len(ratios))
        )
    ratios = [row["speedup"]["cusparse_default_fp32"] for row in rows]
    lines.append(
        Line(
            "cuSPARSE / RSH: training; here the products",
            65.82 / 44.32,
            geomean(ratios),
            len(ratios),
        )
    )
    seconds = [EPOCHS * LAYERS * hot_us(row) / 1e6 for row in rows]
    lines.append(Line("RSH: training, s, mean", 44.32, None, 0))
    lines.append(Line("RSH: its forward products, s, mean", None, mean(seconds), len(rows)))
    for what, published in (("PyG", 54.05), ("DTC-SpMM", 47.10), ("TC-GNN", 48.23)):
        lines.append(Line(f"{what} / RSH, training", published / 44.32, None, 0))
    differs = [
        paper_graphs(sorted({row["matrix"]["name"] for row in rows})),
        f"The paper trains a {LAYERS}-layer GCN for {EPOCHS} epochs; measured are its forward products alone "
        f"({EPOCHS} × {LAYERS} of them), so the ratio bounds that of training from above.",
        "cuSPARSE here is the CSR default in fp32, RSH reads fp16.",
    ]
    return lines, differs


TARGETS = {
    "rsh-fig10": Target(
        "Beside other systems, nine graphs", f"{RSH}, Figure 10, §4.2", "NVIDIA RTX 4090",
        beside_systems, systems({CUSPARSE: 2.35, "HC-SpMM": 2.10, "MP-SpMM": 1.32}), plugins=True),
    "rsh-fig11": Target(
        "Beside other systems, nine graphs", f"{RSH}, Figure 11, §4.2", "NVIDIA RTX 3090",
        beside_systems, systems({CUSPARSE: 2.86, "HC-SpMM": 2.10, "MP-SpMM": 1.32}), plugins=True),
    "rsh-fig12": Target(
        "Beside other systems, SuiteSparse", f"{RSH}, Figure 12, §4.2", RSH_GPUS, beside_systems,
        systems({CUSPARSE: 3.21, "RoDe": 2.04, "DTC-SpMM": 1.91, "Acc-SpMM": 1.61, "MP-SpMM": 1.28}), plugins=True),
    "rsh-fig13": Target(
        "Space of the formats", f"{RSH}, Figure 13, §4.3.1", "no GPU involved",
        lambda m: ["inspect", *m, "--json", "--formats", "coo,csr,me_tcf*,bit_tcf*,rs_tile"], space, inspects=True),
    "rsh-fig14": Target(
        "Row-nnz threshold", f"{RSH}, Figure 14, §4.3.2", "no GPU involved",
        lambda m: ["inspect", *m, "--json", "--formats", "rs_tile", "--threshold", "0:8"], thresholds, inspects=True),
    "rsh-fig15": Target(
        "SM throughput and tensor pipe", f"{RSH}, Figure 15, §4.3.2", RSH_GPUS,
        lambda m: ["profile", *m, "-n", "64:512:x2", "-k", "rsh", "--run", "--cold"], counters),
    "rsh-fig16": Target(
        "Reorderings", f"{RSH}, Figure 16, §4.3.3", RSH_GPUS,
        lambda m: run_command(*m, "-n", "64:512:x2", "-k", "rsh?order=natural", "--no-baselines", "--reorder",
                              "none,rabbit,tca,rsh?two_opt=0&isolation=0,rsh?isolation=0,rsh"), reorderings),
    "rsh-fig17": Target(
        "GCN training", f"{RSH}, Figure 17, §4.4", "NVIDIA RTX 4090",
        lambda m: run_command(*m, "-n", "64,256", "-k", "rsh,cusparse_csr_default"), training),
}  # fmt: skip
