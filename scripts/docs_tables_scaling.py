"""The page of docs_tables.py on products on several GPUs."""

from collections import defaultdict

from docs_tables_data import cases_of, digits, rows_of, table, us
from result_data import geomean

RUN = "h200/scaling.csv"
TORCH = "torch.sparse"
SPLITS = ("columns", "rows_all", "rows", "peer_in_place", "peer_pulled", "peer")
NAMED = {"peer": "peer_in_place", "pulled": "peer_pulled"}  # what `peer` is, by the way of its rows
LARGE = 1_000_000  # nonzeros from which the goal for a share of the bound holds


def of_bounds(rows):
    """Means of the share of the bound that several GPUs reach, and that one reaches of its own."""
    shares = (geomean([float(row[key]) for row in rows]) if rows else None for key in ("of_bound", "one_gpu_of_bound"))
    return ["-" if share is None else f"{share:.2f}" for share in shares]


def summary(rows):
    lines = []
    for (split, n), of in sorted(cases_of(rows, "split", "n").items(), key=lambda item: SPLITS.index(item[0][0])):
        foreseen = sum(row["should_pay"] == row["pays"] for row in of)
        over = geomean([float(row["one_gpu_us"]) / us(row) for row in of])
        pays = sum(row["pays"] == "True" for row in of)
        alone = geomean([float(row["product_us"]) / us(row) for row in of])
        large = of_bounds([row for row in of if int(row["nnz"]) >= LARGE])
        lines.append(
            [f"`{split}`", n, len(of), f"{over:.2f}", pays, f"{foreseen} of {len(of)}", f"{alone:.2f}", *of_bounds(of), *large]
        )
    heads = ["split", "N", "cases", "over one GPU", "pays", "foreseen", "product alone, of both"]
    return table([*heads, "of the bound", "one GPU", "of the bound, large", "one GPU, large"], lines)


def by_case(rows, torch):
    """Times of the splits by rows of B beside those of PyTorch, at N = 128."""
    times = defaultdict(dict)
    for row in rows:
        if row["n"] == "128" and row["split"] != "columns":
            case = times[row["matrix"], row["kernel"]]
            case[row["split"]] = row
    lines = []
    for (matrix, kernel), case in times.items():
        if "peer" in case:
            case.setdefault(NAMED[case["peer"]["way"]], case["peer"])
        first = next(iter(case.values()))
        share = case.get("rows", first)["received_share"]
        cells = [digits(us(case[split])) if split in case else "-" for split in SPLITS[1:-1]]
        chosen = f"`{NAMED[case['peer']['way']]}`" if "peer" in case else "-"
        beside = torch.get(matrix)
        best = min(us(row) for row in case.values())
        lines.append(
            [f"`{matrix}`", f"`{kernel}`", f"{float(share):.3f}", digits(float(first["one_gpu_us"])), *cells,
             chosen, digits(beside) if beside else "-", f"{beside / best:.1f}" if beside else "-"]
        )  # fmt: skip
    heads = [f"`{split}`" for split in SPLITS[1:-1]]
    return table(["matrix", "kernel", "share received", "one GPU", *heads, "`peer` is", "torch 1D", "over torch"], lines)


def scaling():
    all_rows = rows_of(RUN)
    torch = {row["matrix"]: us(row) for row in all_rows if row["kernel"] == TORCH and row["n"] == "128"}
    rows = [row for row in all_rows if row["kernel"] != TORCH]
    return f"""# One product on two GPUs

Two H200 over NVLink, fp16, C in fp32, hot (`results/h200/scaling.csv`). [Scaling](../scaling.md) says what the splits are. Means are geometric. `product alone`: the product of the slowest part, without what it waits for, over both. `of the bound`: the share of the bound of both GPUs, with their link, and `one GPU`: the share that the same product reaches of its own bound on one, which no split can exceed by much; `large`: of matrices with 1M nonzeros and more.

{summary(rows)}
Times at N = 128, us. Share received: of the rows of B that the other GPU has. `torch 1D`: `torch.sparse` behind an all-gather of `torch.distributed`, not from a graph; its C is in fp16.

{by_case(rows, torch)}"""
