"""AsyncSparse (arXiv 2604.17834): what its abstract and its authors' report say of BCSR.

Published values that no text at hand names are None.
"""

import llm_sweep
from result_data import geomean, hot_us

from .common import Line, Target, options_of, run_command, verified

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


def bcsr(documents):
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

    def time(sparsity, options):
        return hot.get((sparsity, "async_bcsr", tuple(sorted(options.items()))))

    lines, (_, neither), (_, plain) = [], STEPS[5], STEPS[0]
    for sparsity in SPARSITIES:
        unpruned, own = geomean(dense), time(sparsity, {})
        value = unpruned / own if unpruned and own else None
        lines.append(
            Line(
                f"{100 * sparsity:g} % zeros: over cuBLAS, unpruned A",
                None,
                value,
                int(bool(value)),
            )
        )
    for sparsity in ABLATED:
        slow, three, multicast = (time(sparsity, o) for o in (neither, STEPS[1][1], STEPS[7][1]))
        every = [t for t in (time(sparsity, o) for _, o in STEPS) if t]
        share = (
            (slow - three) / (slow - min(every))
            if slow and three and len(every) == len(STEPS)
            else None
        )
        at = f"{100 * sparsity:g} % zeros: "
        lines.append(
            Line(
                f"{at}share of the gain by TMA, specialisation, 3 stages",
                None,
                share,
                int(bool(share)),
            )
        )
        base = time(sparsity, plain)
        for what, options in STEPS[1:]:
            us = time(sparsity, options)
            value = us / base if us and base else None
            lines.append(
                Line(
                    f"{at}time of {what.removeprefix('… ')} / all stages",
                    None,
                    value,
                    int(bool(value)),
                )
            )
    differs = [
        "The abstract names no number for this: “about 98 % of the gain” and that a persistent grid, clusters and "
        "multicast lost are known of the authors' report only. Time saved, as a share of the largest saving here; "
        "WGMMA is in all variants.",
        "A = 3584 × 18944 in 128 × 128 blocks, N = 3584, fp16.",
    ]
    return lines, differs


QWEN = llm_sweep.Zeros("qwen2.5-7b", "block", 128)
QWEN_SPARSITY, QWEN_TOKENS = 0.9, 65536
QWEN_KERNELS = ("async_bcsr", llm_sweep.DENSE)


def qwen(documents):
    measured = {}
    for document in documents:
        rows = llm_sweep.without_others(document, "fp16", "fp32", "row", QWEN_KERNELS)
        for case, sides in llm_sweep.times(rows, "prefill").items():
            measured.setdefault(case, {}).update(sides)
    lines = []
    for what, parts, published in (
        ("all 28 layers' linear parts: dense / sparse", llm_sweep.FFN + llm_sweep.ATTENTION, 2.66),
        ("FFN alone: dense / sparse", llm_sweep.FFN, None),
    ):
        value = llm_sweep.ratio_of(measured, parts, QWEN, QWEN_SPARSITY, QWEN_TOKENS)
        lines.append(Line(what, published, value, len(parts) if value else 0))
    differs = [
        "The paper times prefill end to end, attention scores and all; measured are the linear layers alone, all "
        "pruned, so the ratio bounds the end-to-end one from above.",
        "Dense is cuBLAS on the pruned weights with their zeros stored, fp16 inputs and fp32 results.",
        f"{QWEN.block} × {QWEN.block} blocks; the abstract does not name its block size.",
    ]
    return lines, differs


TARGETS = {
    "asyncsparse-bcsr": Target(
        "BCSR: over cuBLAS, and what brings the gain", ASYNC, "NVIDIA GPU with TMA (Hopper)",
        lambda _: run_command(weights(0), *map(weights, SPARSITIES), "-n", "3584", "--precision", "fp16", "-k",
                              ",".join(["cublas_dense", "async_bcsr", *(kernel_name(o) for _, o in STEPS)]),
                              "--no-baselines"), bcsr, matrices=False),
    "asyncsparse-qwen": Target(
        f"Qwen2.5-7B prefill, {QWEN_SPARSITY:.0%} zeros, {QWEN_TOKENS // 1024}K tokens", ASYNC,
        "NVIDIA GPU with TMA (Hopper)",
        lambda _: run_command(*(QWEN.source(w, QWEN_SPARSITY)
                                for w, _ in llm_sweep.FFN + llm_sweep.ATTENTION), "-n", str(QWEN_TOKENS),
                              "-k", ",".join(QWEN_KERNELS), "--no-baselines"), qwen, matrices=False),
}  # fmt: skip
