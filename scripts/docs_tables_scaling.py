"""The page of docs_tables.py on products on several GPUs."""

from collections import defaultdict

from docs_tables_data import cases_of, digits, rows_of, table, us
from result_data import geomean

RUN = "h200/scaling.csv"
TORCH = "torch.sparse"
SPLITS = ("columns", "rows_all", "rows_needed", "rows", "peer_in_place", "peer_pulled", "peer")
BY_ROWS = ("rows_all", "rows", "peer_in_place", "peer_pulled")  # as in the table by matrix
ORDERED, WEAK = "rcm", "weak"  # groups of rows
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
        cells = [digits(us(case[split])) if split in case else "-" for split in BY_ROWS]
        chosen = f"`{NAMED[case['peer']['way']]}`" if "peer" in case else "-"
        beside = torch.get(matrix)
        best = min(us(row) for row in case.values())
        lines.append(
            [f"`{matrix}`", f"`{kernel}`", f"{float(share):.3f}", digits(float(first["one_gpu_us"])), *cells,
             chosen, digits(beside) if beside else "-", f"{beside / best:.1f}" if beside else "-"]
        )  # fmt: skip
    heads = [f"`{split}`" for split in BY_ROWS]
    return table(["matrix", "kernel", "share received", "one GPU", *heads, "`peer` is", "torch 1D", "over torch"], lines)


def in_order(rows):
    """All rows of B against needed ones, of matrices in a good order."""
    lines, gains = [], []
    for (matrix, kernel), of in cases_of(rows, "matrix", "kernel").items():
        case = {row["split"]: row for row in of}
        if not {"rows_all", "rows_needed", "peer"} <= set(case):
            continue
        every, needed, peer = (us(case[split]) for split in ("rows_all", "rows_needed", "peer"))
        gains.append(every / needed)
        share = float(case["rows_needed"]["received_share"])
        lines.append(
            [f"`{matrix}`", f"`{kernel}`", f"{share:.4f}", digits(float(case["peer"]["one_gpu_us"])), digits(every), digits(needed),
             digits(peer), f"{every / needed:.1f}"]
        )  # fmt: skip
    if not lines:
        return ""
    heads = ["matrix", "kernel", "share received", "one GPU", "`rows_all`", "`rows_needed`", "`peer`", "all over needed"]
    return f"""
In the order `rcm`, times at N = 128, us. Needed rows are {geomean(gains):.1f} x as fast as all of them.

{table(heads, lines)}"""


def weakly(rows):
    """A matrix with twice the nonzeros on two GPUs, beside the smaller one on one."""
    lines = []
    for (family, split), of in cases_of([{**row, "family": row["matrix"].partition("?")[0]} for row in rows], "family", "split").items():
        if len(of) != 2:
            continue
        small, large = sorted(of, key=lambda row: int(row["nnz"]))
        one, two = float(small["one_gpu_us"]), us(large)
        lines.append([f"`{family}`", f"`{split}`", small["nnz"], digits(one), large["nnz"], digits(two), f"{one / two:.2f}"])
    if not lines:
        return ""
    heads = ["generator", "split", "nonzeros", "one GPU", "nonzeros", "two GPUs", "one over two"]
    return f"""
Weak scaling, times at N = 128, us.

{table(heads, lines)}"""


def scaling():
    all_rows = rows_of(RUN)
    torch = {row["matrix"]: us(row) for row in all_rows if row["kernel"] == TORCH and row["n"] == "128"}
    rows = [row for row in all_rows if row["kernel"] != TORCH and row["group"] not in (ORDERED, WEAK)]
    ordered, weak = ([row for row in all_rows if row["group"] == group] for group in (ORDERED, WEAK))
    return f"""# One product on two GPUs

Two H200 over NVLink, fp16, C in fp32, hot (`results/h200/scaling.csv`). [Scaling](../scaling.md) says what the splits are. Means are geometric. `product alone`: the product of the slowest part, without what it waits for, over both. `of the bound`: the share of the bound of both GPUs, with their link, and `one GPU`: the share that the same product reaches of its own bound on one, which no split can exceed by much; `large`: of matrices with 1M nonzeros and more.

{summary([row for row in rows if not row["kernel"].startswith("cusparse")])}
Times at N = 128, us. Share received: of the rows of B that the other GPU has. `torch 1D`: `torch.sparse` behind an all-gather of `torch.distributed`, not from a graph; its C is in fp16.

{by_case(rows, torch)}{in_order(ordered)}{weakly(weak)}"""
