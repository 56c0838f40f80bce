"""The tables and figures of the papers that scripts/reproduce.py runs: what was published, what is run
here, and how the published number is computed from a run.

Published values are those of the papers' texts; a value that a figure shows and no text names is None.
"""

from dataclasses import dataclass
from typing import Callable

import llm_sweep
from result_data import InputError, geomean, hot_us, median, number

RSH = "RSH-SpMM (arXiv 2603.08734)"
ASYNC = "AsyncSparse (arXiv 2604.17834), abstract"
NINE = ("com-amazon", "ddi", "DD", "amazon0505", "amazon0601", "Yeast", "OVCAR-8H", "YeastH", "web-BerkStan")
RSH_GPUS = "NVIDIA RTX 4090 and RTX 3090"
MEANS = "Means here are geometric over the matrices; the paper says “average”."


@dataclass
class Line:
    """One number. cases: the measurements behind it."""

    what: str
    published: float | None
    measured: float | None
    cases: int
    digits: int = 2


@dataclass
class Target:
    title: str
    source: str
    published_on: str
    command: Callable  # matrices -> arguments of the program
    evaluate: Callable  # what was read -> (lines, what differs)
    inspects: bool = False  # reads the list that `inspect --json` prints, not a result document
    matrices: bool = True  # takes matrices; the others generate theirs


def mean(values):
    values = [v for v in values if v is not None]
    return sum(values) / len(values) if values else None


def verified(documents):
    return [row for document in documents for row in document["rows"] if row["status"] == "ok" and row["hot"]]


def options_of(name):
    """("rsh", {"two_opt": "0"}) of rsh?two_opt=0."""
    base, _, options = name.partition("?")
    return base, dict(option.partition("=")[::2] for option in options.split("&") if option)


def paper_graphs(names):
    """How the matrices at hand relate to those of the RSH-SpMM paper."""
    held = [name for name in NINE if name.lower() in {n.lower() for n in names}]
    text = f"Of the paper's nine graphs {len(held)} at hand" + (f" ({', '.join(held)})" if held else "")
    return f"{text}; measured on {len(names)} matrices: {', '.join(names[:9])}" + (
        f" and {len(names) - 9} more." if len(names) > 9 else "."
    )


# ---- RSH-SpMM, Figures 13 and 14: structure, no GPU --------------------------------------------


def formats_of(inspected):
    """Formats of every matrix in its own order."""
    return [matrix["reorderings"][0]["formats"] for matrix in inspected]


def space(inspected):
    formats = formats_of(inspected)

    def ratio(over, under):
        pairs = [(f[over]["index_bytes"], f[under]["index_bytes"]) for f in formats if {over, under} <= set(f)]
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
        lines.append(Line(f"space with fp16 values / COO: {name}", None, geomean(values), len(values), 3))
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
            measured = mean([entry[key] for entry in found])
            lines.append(Line(f"threshold {tau}: {what}", value, measured, len(found), digits))
    differs = ["Arithmetic means over the matrices.", "Which rows leave a window is the overlap rule: the "
               "paper's printed rule makes every measure worse (results/NOTES.md)."]  # fmt: skip
    return lines, [paper_graphs([matrix["name"] for matrix in inspected]), *differs]


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
    differs.append("Counters are of a cold launch: ncu flushes the caches. Acc-SpMM is not part of this program.")
    if rows and kernel is None:
        differs.append(f"Kernel {', '.join(sorted({row['kernel'] for row in rows}))} instead of rsh.")
    return lines, differs


def n_values(rows):
    ns = sorted({row["n"] for row in rows})
    return f"N = {', '.join(map(str, ns))} here; the paper averages over 64, 128, 256 and 512." if ns else ""


# Stage of the paper -> the ordering's options here, beside its published speed-up.
ORDERINGS = (
    ("Rabbit order", ("rabbit", {}), 0.87),
    ("TCA", ("tca", {}), 1.15),
    ("ours, spanning forest", ("rsh", {"two_opt": "0", "isolation": "0"}), 1.19),
    ("ours, + 2-opt", ("rsh", {"isolation": "0"}), 1.22),
    ("ours, + isolated rows", ("rsh", {}), 1.25),
)


def reorderings(documents):
    hot = {}
    rows = [row for row in verified(documents) if row["kernel"].startswith("rsh?") and "natural" in row["kernel"]]
    for row in rows:
        base, options = options_of(row["reorder"])
        case = (row["matrix"]["sha256"] or row["matrix"]["name"], row["n"], row["precision"])
        hot[case, base, tuple(sorted(options.items()))] = hot_us(row)
    lines, best = [], []
    for what, (base, options), published in ORDERINGS:
        key = (base, tuple(sorted(options.items())))
        ratios = [hot[case, "none", ()] / us for (case, *order), us in hot.items()
                  if tuple(order) == key and (case, "none", ()) in hot]  # fmt: skip
        lines.append(Line(f"kernel time without / with: {what}", published, geomean(ratios), len(ratios)))
        best = ratios
    lines.append(Line("the same, the best matrix", 1.7, max(best, default=None), len(best)))
    differs = [paper_graphs(sorted({row["matrix"]["name"] for row in rows})), n_values(rows), MEANS]
    return lines, differs


EPOCHS, LAYERS = 500, 6


def training(documents):
    rows = [row for row in verified(documents) if row["kernel"] == "rsh" and row["precision"] == "fp16"]
    rows = [row for row in rows if row["n"] in (64, 256) and row["speedup"]["cusparse_default_fp32"]]
    lines = []
    for n in (64, 256):
        ratios = [row["speedup"]["cusparse_default_fp32"] for row in rows if row["n"] == n]
        lines.append(Line(f"d = {n}: cuSPARSE / RSH, the products alone", None, geomean(ratios), len(ratios)))
    ratios = [row["speedup"]["cusparse_default_fp32"] for row in rows]
    lines.append(Line("cuSPARSE / RSH: training; here the products", 65.82 / 44.32, geomean(ratios), len(ratios)))
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


# ---- ESMM --------------------------------------------------------------------------------------

# Pattern -> (ESMM ms, cuBLAS SGEMM ms, speed-up), compute only, at 4096^3.
ESMM_TABLE = {
    "11111111": (12.10, 7.19, 0.59),
    "11110000": (6.12, 7.19, 1.17),
    "11000000": (4.04, 7.19, 1.78),
    "10000000": (2.72, 7.19, 2.65),
}
ESMM_SIZE = 4096


def esmm_source(pattern):
    return f"gen:esmm?size={ESMM_SIZE}&pattern={pattern}"


def esmm_table(documents):
    hot = {}
    for row in verified(documents):
        base, options = options_of(row["matrix"]["source"].removeprefix("gen:"))
        if base == "esmm" and options.get("size") == str(ESMM_SIZE) and row["precision"] == "fp32":
            hot[options.get("pattern"), row["kernel"]] = hot_us(row)
    lines = []

    def ratio(pattern, kernel):
        dense, sparse = hot.get((pattern, "cublas_dense")), hot.get((pattern, kernel))
        return dense / sparse if dense and sparse else None

    for pattern, (esmm_ms, cublas_ms, speedup) in ESMM_TABLE.items():
        density = f"{100 * pattern.count('1') / 8:g} %"
        for what, published, kernel in (
            ("cuBLAS fp32, ms", cublas_ms, "cublas_dense"),
            ("published scheme (esmm_skip), ms", esmm_ms, "esmm_skip"),
            ("this program's esmm, ms", None, "esmm"),
        ):
            us = hot.get((pattern, kernel))
            lines.append(Line(f"{density}: {what}", published, us and us / 1e3, int(us is not None)))
        for what, published, kernel in (
            ("esmm_skip over cuBLAS", speedup, "esmm_skip"),
            ("esmm over cuBLAS", speedup, "esmm"),
        ):
            value = ratio(pattern, kernel)
            lines.append(Line(f"{density}: {what}", published, value, int(value is not None)))
    total = ratio("10000000", "esmm?extract=ab")
    lines.append(Line("12.5 %: esmm with both patterns over cuBLAS", 2.32, total, int(total is not None)))
    differs = ["Times: hot medians here, ncu's durations there.", "esmm_skip follows the published kernel's scheme "
               "(block and warp skip); esmm lists the surviving inner indices first."]  # fmt: skip
    return lines, differs


# ---- AsyncSparse -------------------------------------------------------------------------------

SHAPE = "rows=3584&cols=18944"
SPARSITIES = (0.5, 0.7, 0.8, 0.9, 0.95)
ABLATED = (0.5, 0.9)
PLAIN = {"cluster": "1", "tile_n": "256"}
STEPS = (
    ("TMA, specialisation, all stages", PLAIN),
    ("… three stages", {**PLAIN, "stages": "3"}),
    ("… two stages", {**PLAIN, "stages": "2"}),
    ("… one stage", {**PLAIN, "stages": "1"}),
    ("… no specialisation", {**PLAIN, "specialise": "0"}),
    ("… neither (cp.async)", {**PLAIN, "specialise": "0", "producer": "cp_async"}),
    ("… static grid", {**PLAIN, "grid": "static"}),
    ("… pairs and multicast", {"cluster": "2"}),
)


def kernel_name(options):
    return "async_bcsr" + ("?" + "&".join(f"{k}={v}" for k, v in sorted(options.items())) if options else "")


def weights(sparsity):
    return f"gen:block_weights?{SHAPE}&block=128&sparsity={sparsity:g}"


def bcsr(documents):
    hot, dense = {}, []
    for row in verified(documents):
        base, options = options_of(row["matrix"]["source"].removeprefix("gen:"))
        if base != "block_weights" or (options.get("block"), options.get("rows")) != ("128", "3584"):
            continue
        sparsity = float(options.get("sparsity", "nan"))
        if row["kernel"] == "cublas_dense" and sparsity == 0:
            dense.append(hot_us(row))
        name, chosen = options_of(row["kernel"])
        hot[sparsity, name, tuple(sorted(chosen.items()))] = hot_us(row)

    def time(sparsity, options):
        return hot.get((sparsity, "async_bcsr", tuple(sorted(options.items()))))

    lines, (_, neither), (_, plain) = [], STEPS[5], STEPS[0]
    for sparsity in SPARSITIES:
        unpruned, own = geomean(dense), time(sparsity, {})
        value = unpruned / own if unpruned and own else None
        lines.append(Line(f"{100 * sparsity:g} % zeros: over cuBLAS, unpruned A", None, value, int(bool(value))))
    for sparsity in ABLATED:
        slow, three, multicast = (time(sparsity, o) for o in (neither, STEPS[1][1], STEPS[7][1]))
        every = [t for t in (time(sparsity, o) for _, o in STEPS) if t]
        share = (slow - three) / (slow - min(every)) if slow and three and len(every) == len(STEPS) else None
        at = f"{100 * sparsity:g} % zeros: "
        lines.append(Line(f"{at}share of the gain by TMA, specialisation, 3 stages", 0.98, share, int(bool(share))))
        base = time(sparsity, plain)
        for what, options in STEPS[1:]:
            us = time(sparsity, options)
            value = us / base if us and base else None
            lines.append(Line(f"{at}time of {what.removeprefix('… ')} / all stages", None, value, int(bool(value))))
    differs = [
        "The abstract names no number for this: “about 98 % of the gain” and that a persistent grid, clusters and "
        "multicast lost are known of the authors' report only. Time saved, as a share of the largest saving here; "
        "WGMMA is in all variants.",
        "A = 3584 × 18944 in 128 × 128 blocks, N = 3584, fp16.",
    ]
    return lines, differs


QWEN_BLOCK, QWEN_SPARSITY, QWEN_TOKENS = 128, 0.9, 65536


def qwen(documents):
    measured = {}
    for document in documents:
        for case, sides in llm_sweep.times(document).items():
            measured.setdefault(case, {}).update(sides)
    lines = []
    for what, parts, published in (
        ("all 28 layers' linear parts: dense / sparse", llm_sweep.FFN + llm_sweep.ATTENTION, 2.66),
        ("FFN alone: dense / sparse", llm_sweep.FFN, None),
    ):
        dense, sparse = (
            llm_sweep.total(measured, parts, QWEN_BLOCK, QWEN_SPARSITY, QWEN_TOKENS, side)
            for side in ("dense", "sparse")
        )
        value = dense / sparse if dense and sparse else None
        lines.append(Line(what, published, value, len(parts) if value else 0))
    differs = [
        "The paper times prefill end to end, attention scores and all; measured are the linear layers alone, all "
        "pruned, so the ratio bounds the end-to-end one from above.",
        "Dense is cuBLAS on the pruned weights with their zeros stored, fp16 inputs and fp32 results.",
        f"{QWEN_BLOCK} × {QWEN_BLOCK} blocks; the abstract does not name its block size.",
    ]
    return lines, differs


# ---- the list ----------------------------------------------------------------------------------


def run_command(*arguments):
    """quick: sampling per case is bounded, since a whole figure is measured at once."""
    return ["run", *arguments, "--max-seconds", "0.1", "-q"]


TARGETS = {
    "rsh-fig13": Target(
        "Space of the formats", f"{RSH}, Figure 13, §4.3.1", "no GPU involved",
        lambda m: ["inspect", *m, "--json", "--formats", "coo,csr,me_tcf*,bit_tcf*,rs_tile"], space, inspects=True),
    "rsh-fig14": Target(
        "Row-nnz threshold", f"{RSH}, Figure 14, §4.3.2", "no GPU involved",
        lambda m: ["inspect", *m, "--json", "--formats", "rs_tile", "--threshold", "0:8"], thresholds, inspects=True),
    "rsh-fig15": Target(
        "SM throughput and tensor pipe", f"{RSH}, Figure 15, §4.3.2", RSH_GPUS,
        lambda m: ["profile", *m, "-n", "64:512:x2", "-k", "rsh", "--run"], counters),
    "rsh-fig16": Target(
        "Reorderings", f"{RSH}, Figure 16, §4.3.3", RSH_GPUS,
        lambda m: run_command(*m, "-n", "64:512:x2", "-k", "rsh?order=natural", "--no-baselines", "--reorder",
                              "none,rabbit,tca,rsh?two_opt=0&isolation=0,rsh?isolation=0,rsh"), reorderings),
    "rsh-fig17": Target(
        "GCN training", f"{RSH}, Figure 17, §4.4", "NVIDIA RTX 4090",
        lambda m: run_command(*m, "-n", "64,256", "-k", "rsh,cusparse_csr_default"), training),
    "esmm-table": Target(
        "ESMM over cuBLAS by density, 4096³, fp32", "ESMM readme, expected results", "NVIDIA A10G",
        lambda _: run_command(*map(esmm_source, ESMM_TABLE), "-n", str(ESMM_SIZE), "--precision", "fp32", "-k",
                              "esmm,esmm_skip,esmm?extract=ab,cublas_dense", "--no-baselines"),
        esmm_table, matrices=False),
    "asyncsparse-bcsr": Target(
        "BCSR: over cuBLAS, and what brings the gain", ASYNC, "NVIDIA GPU with TMA (Hopper)",
        lambda _: run_command(weights(0), *map(weights, SPARSITIES), "-n", "3584", "--precision", "fp16", "-k",
                              ",".join(["cublas_dense", "async_bcsr", *(kernel_name(o) for _, o in STEPS)]),
                              "--no-baselines"), bcsr, matrices=False),
    "asyncsparse-qwen": Target(
        f"Qwen2.5-7B prefill, {QWEN_SPARSITY:.0%} zeros, {QWEN_TOKENS // 1024}K tokens", ASYNC,
        "NVIDIA GPU with TMA (Hopper)",
        lambda _: run_command(*(llm_sweep.source(w, QWEN_BLOCK, QWEN_SPARSITY)
                                for w, _ in llm_sweep.FFN + llm_sweep.ATTENTION), "-n", str(QWEN_TOKENS),
                              "-k", "async_bcsr,cublas_dense", "--no-baselines"), qwen, matrices=False),
}  # fmt: skip


def checked_inspection(value, name):
    """The list that `inspect --json` prints, else an error that says so."""
    try:
        for matrix in value:
            if not isinstance(matrix["name"], str) or not isinstance(matrix["reorderings"][0]["formats"], dict):
                raise TypeError
        if not isinstance(value, list):
            raise TypeError
    except (TypeError, KeyError, IndexError):
        raise InputError(f"{name}: expected what `spmmbench inspect --json` prints") from None
    return value
