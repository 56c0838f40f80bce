"""AsyncSparse (arXiv 2604.17834): what its abstract and its authors' report say of BCSR, of WCSR and of
a model as a whole.

Published values that no text at hand names are None.
"""

from command_line import numbered
from result_data import geomean, hot_us

from .common import Line, Target, options_of, plugin_system, run_command, verified

ASYNC = "AsyncSparse (arXiv 2604.17834), abstract"
SHAPE = "rows=3584&cols=18944"
CASE = {"n": 3584, "precision": "fp16", "c_type": "fp32", "layout": "row"}
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
    return "async_bcsr" + (
        "?" + "&".join(f"{k}={v}" for k, v in sorted(options.items())) if options else ""
    )


def weights(sparsity):
    return f"gen:block_weights?{SHAPE}&block=128&sparsity={sparsity:g}"


def times_of_blocks(documents):
    """Times of cuBLAS on the A without zeros, and {(share of zeros, kernel, options): time}."""
    hot, dense = {}, []
    for row in verified(documents):
        if any(row[field] != value for field, value in CASE.items()):
            continue
        base, options = options_of(row["matrix"]["source"].removeprefix("gen:"))
        if base != "block_weights" or (options.get("block"), options.get("rows")) != (
            "128",
            "3584",
        ):
            continue
        sparsity = float(options.get("sparsity", "nan"))
        if row["kernel"] == "cublas_dense" and sparsity == 0:
            dense.append(hot_us(row))
        name, chosen = options_of(row["kernel"])
        hot[sparsity, name, tuple(sorted(chosen.items()))] = hot_us(row)
    return dense, hot


def measured(what, value):
    """A line of which the paper gives no value."""
    return Line(what, None, value, int(bool(value)))


def ablation(sparsity, time):
    """What each stage of the kernel gains. `time(options)`: None where it was not measured."""
    at = f"{100 * sparsity:g} % zeros: "
    times = {what: time(options) for what, options in STEPS}
    base, three, slow = (time(STEPS[i][1]) for i in (0, 1, 5))
    share = None
    if all(times.values()):
        share = (slow - three) / (slow - min(times.values()))
    lines = [measured(f"{at}share of the gain by TMA, specialisation, 3 stages", share)]
    for what, us in list(times.items())[1:]:
        name = f"{at}time of {what.removeprefix('… ')} / all stages"
        lines.append(measured(name, us / base if us and base else None))
    return lines


def bcsr(documents):
    dense, hot = times_of_blocks(documents)

    def time_at(sparsity):
        return lambda options: hot.get((sparsity, "async_bcsr", tuple(sorted(options.items()))))

    lines, unpruned = [], geomean(dense)
    for sparsity in SPARSITIES:
        own = time_at(sparsity)({})
        value = unpruned / own if unpruned and own else None
        lines.append(measured(f"{100 * sparsity:g} % zeros: over cuBLAS, unpruned A", value))
    for sparsity in ABLATED:
        lines += ablation(sparsity, time_at(sparsity))
    differs = [
        "The abstract names no number for this: “about 98 % of the gain” and that a persistent grid, clusters and "
        "multicast lost are known of the authors' report only. Time saved, as a share of the largest saving here; "
        "WGMMA is in all variants.",
        "A = 3584 × 18944 in 128 × 128 blocks, N = 3584, fp16.",
    ]
    return lines, differs


QWEN_ZEROS, QWEN_BLOCK, QWEN_TOKENS = 0.9, 128, 65536
FFN = ("gate_up", "swiglu", "down")  # one operation where block_swiglu multiplies gate and up
LINEAR = ("qkv", "o", *FFN)
ATTENTION = ("find blocks", "attention")


def qwen(documents):
    rows = {
        row["kernel"]: row
        for row in verified(documents)
        if (row["matrix"]["name"], row["n"]) == ("Qwen2.5-7B", QWEN_TOKENS)
    }

    def us(mode, operations):
        metrics = rows[mode]["metrics"] if mode in rows else {}
        return sum(metrics.get(f"{operation}_us") or 0 for operation in operations)

    def over(sparse, operations):
        """Of `sparse` in these operations alone."""
        dense, own = us("dense", operations), us(sparse, operations)
        return dense / own if dense and own else None

    def end_to_end(sparse, operations=None, base="dense"):
        """Of `sparse`; where operations are named, of what is dense but for these."""
        if base not in rows or sparse not in rows:
            return None
        dense, own = (hot_us(rows[mode]) for mode in (base, sparse))
        if operations:
            own = dense - us("dense", operations) + us(sparse, operations)
        return dense / own

    lines = [
        Line(what, published, value, int(bool(value)))
        for what, published, value in (
            ("end to end, feed-forward and attention sparse", 2.66, end_to_end("both", FFN + ATTENTION)),
            ("end to end, all linear layers and attention sparse", None, end_to_end("both")),
            ("end to end, all linear layers sparse", None, end_to_end("linear")),
            ("… over cuBLAS on the same zeros", None, end_to_end("linear", base="pruned")),
            ("end to end, attention sparse", None, end_to_end("attention")),
            ("all 28 layers' linear parts and SwiGLU: dense / sparse", None, over("linear", LINEAR)),
            ("FFN alone: dense / sparse", None, over("linear", FFN)),
            ("attention alone: dense / sparse", None, over("attention", ATTENTION)),
        )
    ]
    told = next((d["context"]["protocol"] for d in documents if "dense_attention" in d["context"]["protocol"]), {})
    measured = f"{told.get('measured_layers', '?')} of {told.get('layers', '?')} layers are measured, times scaled"
    differs = [
        "Dense over sparse, of examples/qwen. The feed-forward with sparse attention is put together of the times of "
        "operations; the other lines end to end are whole passes. The feed-forward includes SwiGLU.",
        f"Dense is cuBLAS with unpruned random weights and {told.get('dense_attention', 'cuDNN')}; {measured}. Zeros save "
        "power, so that all of a pass with pruned weights runs at a higher clock.",
        f"Blocks of {QWEN_BLOCK} × {QWEN_BLOCK}; attention by {told.get('sparse_attention', 'FlexAttention')}, {QWEN_ZEROS:.0%} zeros of the causal half, "
        "at random. The abstract names neither its blocks nor the pattern.",
    ]
    return lines, differs


# ---- WCSR ---------------------------------------------------------------------------------------

WCSR, WCSR_PART, WCSR_N = "async_wcsr_paper", 16, 128
WCSR_PARTS = (4, 8, 32)
CUSPARSE = "cusparse_csr_default"


def wcsr_part(part):
    return f"{WCSR}?part={part}"


def wcsr(documents):
    least, split = {}, set()
    for row in verified(documents):
        name = plugin_system(row["kernel"]) or row["kernel"]
        if name == CUSPARSE:
            name += f" {row['precision']}"
        elif row["precision"] != "fp16" and name == row["kernel"]:
            continue
        if (row["layout"], row["reorder"], row["n"]) != ("row", "none", WCSR_N):
            continue
        case = row["matrix"]["sha256"] or row["matrix"]["name"]
        times = least.setdefault(name, {})
        times[case] = min(hot_us(row), times.get(case, hot_us(row)))
        if name == WCSR and row["metrics"].get("split_windows"):
            split.add(case)

    own = least.get(WCSR, {})

    def line(what, published, name, cases=own):
        ratios = [us / own[case] for case, us in least.get(name, {}).items() if case in cases]
        return Line(what, published, geomean(ratios), len(ratios))

    lines = [
        line("cuSPARSE in fp16 / WCSR as published", 6.24, f"{CUSPARSE} fp16"),
        line("cuSPARSE in fp32 / WCSR as published", None, f"{CUSPARSE} fp32"),
        line("Acc-SpMM / WCSR as published", 1.47, "Acc-SpMM"),
        line("async_wcsr / WCSR as published", None, "async_wcsr"),
        *(
            line(f"where windows are split: at {part} tiles / at {WCSR_PART}", None, wcsr_part(part), split)
            for part in WCSR_PARTS
        ),
    ]
    names = {row["matrix"]["name"] for row in verified(documents)}
    differs = [
        f"Geometric means over the matrices, N = {WCSR_N}, fp16; the abstract names neither N nor its cuSPARSE.",
        f"{numbered(len(names), 'matrix', 'matrices')} here; the paper takes those of SuiteSparse.",
        "A copied by TMA is in all variants: the abstract gives no number without. A tile has 64 columns.",
        "" if "Acc-SpMM" in least else "Acc-SpMM was not brought: --plugin LIB (docs/peers.md).",
    ]
    return lines, differs


TARGETS = {
    "asyncsparse-bcsr": Target(
        "BCSR: over cuBLAS, and what brings the gain", ASYNC, "NVIDIA GPU with TMA (Hopper)",
        lambda _: run_command(weights(0), *map(weights, SPARSITIES), "-n", "3584", "--precision", "fp16", "-k",
                              ",".join(["cublas_dense", "async_bcsr", *(kernel_name(o) for _, o in STEPS)]),
                              "--no-baselines"), bcsr, matrices=False),
    "asyncsparse-qwen": Target(
        f"Qwen2.5-7B prefill, {QWEN_ZEROS:.0%} zeros, {QWEN_TOKENS // 1024}K tokens", ASYNC,
        "NVIDIA GPU with TMA (Hopper)",
        lambda _: ["--tokens", str(QWEN_TOKENS), "--zeros", str(QWEN_ZEROS), "--block", str(QWEN_BLOCK),
                   "--attention-zeros", str(QWEN_ZEROS)], qwen, matrices=False, script="examples/qwen/qwen.py"),
    "asyncsparse-wcsr": Target(
        "WCSR: over cuSPARSE, and what splitting windows gains", ASYNC, "NVIDIA GPU with TMA (Hopper)",
        lambda m: run_command(*m, "-n", str(WCSR_N), "--precision", "fp16,fp32", "-k",
                              ",".join([WCSR, *map(wcsr_part, WCSR_PARTS), "async_wcsr", CUSPARSE]),
                              "--no-baselines"), wcsr, plugins=True),
}  # fmt: skip
