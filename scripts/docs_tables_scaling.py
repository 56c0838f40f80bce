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


def of_longest(row):
    """What the longer of the product of the slowest part and the transfer takes, of both together."""
    return max(float(row["product_us"]), float(row["transfer_us"])) / us(row)


def of_half(row):
    """The time of half the product on one GPU, of that of the slowest part."""
    return float(row["one_gpu_us"]) / int(row["gpus"]) / float(row["product_us"])


def losses(rows):
    """What a part loses by its kernel, and what by being a part, of large matrices whose B is split."""
    lines, named = [], [row for row in rows if row["split"] in ("rows", "peer") and row["n"] == "128"]
    of_goal = [row for row in named if int(row["nnz"]) >= LARGE and row["matrix"].partition("?")[0] == row["matrix"]]
    shares = ("of_bound", "one_gpu_of_bound")
    for row in of_goal:
        times = [float(row["one_gpu_us"]), float(row["product_us"]), float(row["transfer_us"]), us(row), float(row["of_bound"]) * us(row)]
        ratios = [*(float(row[key]) for key in shares), of_half(row), of_longest(row)]
        lines.append([f"`{row['matrix']}`", f"`{row['kernel']}`", f"`{row['split']}`", *map(digits, times), *(f"{ratio:.2f}" for ratio in ratios)])
    for split in ("rows", "peer"):
        of = [row for row in of_goal if row["split"] == split]
        if of:
            means = [geomean([value(row) for row in of]) for value in (*(lambda row, key=key: float(row[key]) for key in shares), of_half, of_longest)]
            lines.append(["mean", "", f"`{split}`", *[""] * 5, *(f"{mean:.2f}" for mean in means)])
    if not lines:
        return ""
    heads = ["matrix", "kernel", "split", "one GPU", "slowest part", "transfer", "together", "bound", "of the bound", "one GPU, of its bound"]
    return f"""
Matrices of {LARGE:,} nonzeros and more whose B is split, times at N = 128, us. `slowest part` is the time of its product alone, `transfer` that of the gather alone, `together` that of both. The last two columns say what is lost: half the time of one GPU over that of the slowest part, and the longer of product and transfer over both together.

{table([*heads, "half over slowest", "longer over together"], lines)}"""


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
    lines, gains, over_nccl, alone = [], [], [], []
    for (matrix, kernel), of in cases_of(rows, "matrix", "kernel").items():
        case = {row["split"]: row for row in of}
        if not {"rows_all", "rows_needed", "peer"} <= set(case):
            continue
        every, needed, peer = (us(case[split]) for split in ("rows_all", "rows_needed", "peer"))
        gains.append(every / needed)
        over_nccl.append(needed / peer)
        alone.append(float(case["rows_needed"]["transfer_us"]) / float(case["peer"]["transfer_us"]))
        share = float(case["rows_needed"]["received_share"])
        lines.append(
            [f"`{matrix}`", f"`{kernel}`", f"{share:.4f}", digits(float(case["peer"]["one_gpu_us"])), digits(every), digits(needed),
             digits(peer), f"{every / needed:.1f}", f"{needed / peer:.2f}"]
        )  # fmt: skip
    if not lines:
        return ""
    heads = ["matrix", "kernel", "share received", "one GPU", "`rows_all`", "`rows_needed`", "`peer`", "all over needed", "needed over peer"]
    return f"""
In the order `rcm`, times at N = 128, us. `rows_needed` is {geomean(gains):.1f} x as fast as `rows_all`. `peer`, which reads the rows in place, is {geomean(over_nccl):.2f} x as fast as `rows_needed`, and its gather alone {geomean(alone):.2f} x as fast.

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

Two H200 over NVLink, fp16, C in fp32, hot (`results/h200/scaling.csv`). [Scaling](../scaling.md) says what the splits are. Means are geometric.

- `product alone`: the time of the slowest part's product over that of product and gather together.
- `of the bound`: the share that is reached of the bound of both GPUs with their link.
- `one GPU`: the share that the same product reaches of its own bound on one GPU. No split can exceed it by much.
- `large`: of matrices with 1M nonzeros and more.

{summary([row for row in rows if not row["kernel"].startswith("cusparse")])}
Times at N = 128, us. Share received: of the rows of B that the other GPU has. `torch 1D`: `torch.sparse` behind an all-gather of `torch.distributed`, not from a graph; its C is in fp16.

{by_case(rows, torch)}{losses([row for row in rows if not row["kernel"].startswith("cusparse")])}{in_order(ordered)}{weakly(weak)}"""
