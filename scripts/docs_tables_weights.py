"""The pages of docs/tables about weights and layers."""

from collections import defaultdict

from docs_tables_data import cases_of, digits, document, percent, rows_of, table, us, zeros_of
from result_data import geomean


def block_sparse():
    rows = [row for row in document("h200/bcsr-fp16-down-n3584.json") if row["status"] == "ok"]
    times, dense = defaultdict(dict), {}
    for row in rows:
        spec = row["matrix"]["name"]
        block = next(part[6:] for part in spec.split("?")[1].split("&") if part.startswith("block="))
        zeros = zeros_of(spec)
        times[row["kernel"].split("?")[0], block][zeros] = row["hot"]["median_us"]
        if zeros == 0 and row["kernel"] == "cublas_dense":
            dense[block] = row["hot"]["median_us"]
    levels = sorted({zeros for of in times.values() for zeros in of if zeros})
    unpruned = geomean(list(dense.values()))
    lines = []
    for (kernel, block), of in sorted(times.items()):
        if kernel != "cublas_dense":
            pairs = [(of[z], unpruned / of[z], times["cublas_dense", block][z] / of[z]) for z in levels]
            lines.append([f"`{kernel}`, {block} x {block}", *(f"{digits(t)} ({a:.2f}, {b:.2f})" for t, a, b in pairs)])
    return f"""# Block-sparse weights

A = 3584 x 18944, N = 3584, fp16, on an H200 (`results/h200/bcsr-fp16-down-n3584.json`): us, and in parentheses the speed-up over cuBLAS on the unpruned matrix, and on the pruned one with its zeros stored. The second is smaller, because zeros save power and cuBLAS runs faster on them.

{table(["kernel, blocks", *(f"{percent(z)} zeros" for z in levels)], lines)}"""


SHAPES = {
    "llama3-70b/ffn_gate": "28672 x 8192",
    "llama3-70b/ffn_down": "8192 x 28672",
    "qwen2.5-7b/ffn_gate": "18944 x 3584",
    "qwen2.5-7b/ffn_down": "3584 x 18944",
    "llama3-70b/attn_q": "8192 x 8192",
    "qwen2.5-7b/attn_q": "3584 x 3584",
}
FEW = 64  # columns up to which the run of decoding measured


def scattered_table(rows, kernel, kind, shapes, dense="cublas_dense"):
    ns = sorted({int(row["n"]) for row in rows if row["kernel"] == kernel})
    lines = []
    for layer in shapes:
        of = [row for row in rows if row["matrix"].split("?")[0] == layer]
        for zeros in sorted({zeros_of(row["matrix"]) for row in of}):
            cells = []
            for n in ns:
                at = {r["kernel"]: r for r in of if int(r["n"]) == n and zeros_of(r["matrix"]) == zeros}
                if kernel not in at or dense not in at:
                    cells.append("")
                    continue
                floor = float(at[kernel]["timer_floor_us"] or 0) if kind == "cold" else 0
                ours, theirs = (us(at[name], kind) - floor for name in (kernel, dense))
                cells.append(f"{digits(ours)} ({theirs / ours:.2f})")
            lines.append([SHAPES[layer], percent(zeros), *cells])
    return table(["A", "zeros", *(f"N = {n}" for n in ns)], lines)


def weights():
    rows = rows_of("h200/weights.csv")
    for row in rows:
        row["matrix"] = row["matrix"].removeprefix("gen:")
    layers = list(SHAPES)[:4]
    few = [row for row in rows if row["group"] == "decode"]
    wide = [row for row in rows if row["group"] == "scattered" and int(row["n"]) > FEW]
    text = """# Weights with scattered zeros

Weights of Llama 3 70B and Qwen2.5-7B with random zeros, fp16, column-major, C in fp32, on an H200 (`results/h200/weights.csv`): us, and in parentheses the speed-up over cuBLAS in the same run. Hot is for launches that follow one another, where part of the weights may stay in the L2 cache. Cold is for decoding, where each launch reads its weights from memory; the time of two events is subtracted.

"""
    for kernel in ("gap_slices", "gather_mma", "bitmap_dense"):
        of = [r for r in few if r["kernel"] in (kernel, "cublas_dense") and (int(r["n"]) == 1) >= (kernel == "gap_slices")]
        for kind in ("hot", "cold"):
            text += f"## {kernel}, {kind}\n\n{scattered_table(of, kernel, kind, layers)}\n"
    fp8 = [row for row in rows if row["group"] == "fp8"]
    for kernel in ("gap_slices", "gather_mma", "bitmap_dense"):
        for kind in ("hot", "cold"):
            text += f"## {kernel}, fp8, {kind}, over cuBLASLt in fp8\n\n{scattered_table(fp8, kernel, kind, layers, 'cublaslt_dense')}\n"
    return text + f"""## bitmap_dense, more columns, hot

{scattered_table([r for r in wide if r["kernel"] in ("bitmap_dense", "cublas_dense")], "bitmap_dense", "hot", layers)}"""


def two_four():
    rows = [row for row in rows_of("h200/weights.csv") if row["group"] == "2:4"]
    ns = sorted({int(row["n"]) for row in rows if row["kernel"] == "two_four"})
    lines = []
    for layer, shape in SHAPES.items():
        at = {(r["kernel"], int(r["n"])): us(r) for r in rows if r["matrix"].split("?")[0].removeprefix("gen:") == layer}
        if any(kernel == "two_four" for kernel, _ in at):
            cells = [(at.get(("two_four", n)), at.get(("cublas_dense", n))) for n in ns]
            lines.append([shape, *(f"{digits(t)} ({d / t:.2f})" if t and d else "" for t, d in cells)])
    return f"""# Weights in 2:4

`two_four`, fp16, column-major, C in fp32, hot, on an H200 (group `2:4` of `results/h200/weights.csv`): us, and in parentheses the speed-up over cuBLAS in the same run.

{table(["A", *(f"N = {n}" for n in ns)], lines)}"""


def layers():
    rows = rows_of("h200/layers.csv")
    ns = sorted({int(row["n"]) for row in rows if row["group"] == "dlmc"})
    text = ""
    for group, name in (("dlmc", "30 layers of DLMC, row-major"), ("layers", "Generated layers, column-major")):
        of = [row for row in rows if row["group"] == group]
        lines, every = [], defaultdict(list)
        for shape, case in sorted(cases_of(of, "rows", "cols").items(), key=lambda item: tuple(map(int, item[0]))):
            cells = []
            for n in ns:
                at = cases_of([row for row in case if int(row["n"]) == n], "matrix").values()
                pairs = [{row["kernel"]: us(row) for row in both} for both in at]
                pairs = [(p["dense_cluster"], p["cublas_dense"]) for p in pairs if len(p) == 2]
                every[n] += [dense / ours for ours, dense in pairs]
                cells.append(
                    f"{digits(geomean([p[0] for p in pairs]))} ({geomean([p[1] / p[0] for p in pairs]):.2f})"
                    if pairs
                    else ""
                )
            if any(cells):
                lines.append([" x ".join(shape), *cells])
        lines.append(["all, speed-up", *(f"{geomean(every[n]):.2f}" if every[n] else "" for n in ns)])
        text += f"## {name}\n\n{table(['A', *(f'N = {n}' for n in ns)], lines)}\n"
    return f"""# Small layers

`dense_cluster`, fp16, C in fp32, hot, on an H200 (`results/h200/layers.csv`), with a build that cuts boxes of B at column N: us, and in parentheses the speed-up over cuBLAS in the same run; means of the layers of a shape.

{text.rstrip()}
"""


def esmm():
    rows = [row for row in rows_of("h200/esmm_density.csv") if row["status"] == "ok"]
    lines = [
        [
            row["size"],
            percent(float(row["density"])),
            *(digits(float(row[f"{name}_us"])) for name in ("esmm", "esmm_skip", "cublas_fp32")),
            f"{float(row['cublas_fp32_us']) / float(row['esmm_us']):.2f}",
        ]
        for row in rows
    ]
    on_tensor_cores = [
        [
            row["size"],
            percent(float(row["density"])),
            *(
                cell
                for precision in ("fp16", "tf32")
                for cell in (
                    *(digits(float(row[f"mma_{precision}_{name}"])) for name in ("us", "total_us", "lists_us")),
                    digits(float(row[f"cublas_{precision}_us"])),
                    f"{float(row[f'cublas_{precision}_us']) / float(row[f'mma_{precision}_us']):.2f}",
                )
            ),
        ]
        for row in rows
        if row["mma_fp16_us"]
    ]
    of_precision = ["with A's patterns", "lists", "cuBLAS", "over cuBLAS"]
    return f"""# ESMM

Two sparse operands of size³ in fp32, patterns in both, hot, on an H200 (`results/h200/esmm_density.csv`), us:

{table(["size", "bits set in each pattern", "`esmm`", "`esmm_skip`", "cuBLAS fp32", "`esmm` over cuBLAS"], lines)}
## On tensor cores

The same by `esmm_mma`, which takes cuBLAS where many indices survive; with A's patterns made in each call; and by lists alone (`path=lists`), beside cuBLAS of the precision:

{table(["size", "bits set in each pattern", "fp16", *of_precision, "tf32", *of_precision], on_tensor_cores)}"""
