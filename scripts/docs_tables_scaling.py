"""The page of docs_tables.py on products on several GPUs."""

from collections import defaultdict

from docs_tables_data import cases_of, digits, rows_of, table, us
from result_data import geomean

RUN = "h200/scaling.csv"
TORCH = "torch.sparse"
SPLITS = ("columns", "rows_all", "rows", "peer")


def summary(rows):
    lines = []
    for (split, n), of in sorted(cases_of(rows, "split", "n").items(), key=lambda item: SPLITS.index(item[0][0])):
        foreseen = sum(row["should_pay"] == row["pays"] for row in of)
        over = geomean([float(row["one_gpu_us"]) / us(row) for row in of])
        pays = sum(row["pays"] == "True" for row in of)
        bound = geomean([float(row["of_bound"]) for row in of])
        alone = geomean([float(row["product_us"]) / us(row) for row in of])
        lines.append([f"`{split}`", n, len(of), f"{over:.2f}", pays, f"{foreseen} of {len(of)}", f"{bound:.2f}", f"{alone:.2f}"])
    return table(
        ["split", "N", "cases", "over one GPU", "pays", "foreseen", "of the bound", "product alone, of both"], lines
    )


def by_case(rows, torch):
    """Times of the splits by rows of B beside those of PyTorch, at N = 128."""
    times = defaultdict(dict)
    for row in rows:
        if row["n"] == "128":
            case = times[row["matrix"], row["kernel"]]
            case[row["split"]] = row
    lines = []
    for (matrix, kernel), case in times.items():
        first = next(iter(case.values()))
        share = case.get("rows", first)["received_share"]
        cells = [digits(us(case[split])) if split in case else "-" for split in SPLITS[1:]]
        beside = torch.get(matrix)
        best = min(us(row) for row in case.values())
        lines.append(
            [f"`{matrix}`", f"`{kernel}`", f"{float(share):.3f}", digits(float(first["one_gpu_us"])), *cells,
             digits(beside) if beside else "-", f"{beside / best:.1f}" if beside else "-"]
        )  # fmt: skip
    heads = [f"`{split}`" for split in SPLITS[1:]]
    return table(["matrix", "kernel", "share received", "one GPU", *heads, "torch 1D", "over torch"], lines)


def scaling():
    all_rows = rows_of(RUN)
    torch = {row["matrix"]: us(row) for row in all_rows if row["kernel"] == TORCH and row["n"] == "128"}
    rows = [row for row in all_rows if row["kernel"] != TORCH]
    return f"""# One product on two GPUs

Two H200 over NVLink, fp16, C in fp32, hot (`results/h200/scaling.csv`). [Scaling](../scaling.md) says what the splits are. Means are geometric. `product alone`: the product of the slowest part, without what it waits for, over both.

{summary(rows)}
Times at N = 128, us. Share received: of the rows of B that the other GPU has. `torch 1D`: `torch.sparse` behind an all-gather of `torch.distributed`, not from a graph; its C is in fp16.

{by_case(rows, torch)}"""
