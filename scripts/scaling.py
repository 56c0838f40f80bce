#!/usr/bin/env python3
"""How products on several GPUs scale, from the documents of `spmmbench run --gpus G --json`.

  scaling.py two.json four.json --figure scaling.png    a table, and a figure of speed-up over GPUs
  scaling.py results/h200/scaling.csv --figure two.png   the same of recorded rows; of one number of GPUs, by matrix
  scaling.py two.json --paper 111e6,1.6e9,128           on paper: rows, nonzeros and N of a square graph

Weak scaling is shown where the rows have it: a generated matrix with G times the nonzeros of another of the same
generator, on G GPUs, beside the other on one.

On paper every rate is a measured one but that of the network, which --network gives: gathers and copies
of one H200 (docs/tables), the link as the first document's rows have it.
"""

import argparse
import collections
import csv
import pathlib
import sys

from command_line import Parser, numbered, require, run
from result_data import InputError, geomean, load_document, write_whole

# Of one H200, 1e9 bytes a second: rows of B gathered from the cache, and a copy within its memory, which
# is also what gathers from memory are held to.
GATHER, COPY = 8400, 4300
CACHE, MEMORY = 60e6, 141e9  # bytes
GPUS_OF_A_HOST = 8
VALUE, INDEX, RESULT = 2, 4, 4  # bytes: an element of A and B in fp16, a column index, an element of C in fp32
SECTOR = 32  # bytes that a gather reads at the least
WIDTH_INCHES, LINE_INCHES = 7, 0.22  # of a figure by matrix, and of each of its cases
SAME_SIZE = 0.02  # relative, of nonzeros
ORDERS = {"rcm": "rcm"}  # of A, by the group of recorded rows


def recorded(path):
    """The rows of a CSV as a document, whose fields here they have under one name each."""
    made = []
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["of_bound"] == "":  # of another library, of which only a time is known
                continue
            split = {key: float(row[key]) for key in ("transfer_us", "product_us", "one_gpu_us", "received_share")}
            split |= {key: row[key] == "True" for key in ("should_pay", "pays")}
            split |= {"name": row["split"], "gpus": int(row["gpus"])}
            matrix = {"name": row["matrix"], "nnz": int(row["nnz"])}
            made.append({"status": "ok", "matrix": matrix, "n": int(row["n"]), "kernel": row["kernel"],
                         "precision": row["precision"], "reorder": ORDERS.get(row["group"], "none"), "of_bound": float(row["of_bound"]),
                         "hot": {"median_us": float(row["hot_median_us"])}, "split": split})  # fmt: skip
    return {"rows": made}


def split_rows(documents):
    rows = [row for document in documents for row in document["rows"] if row["status"] == "ok" and row.get("split")]
    if not rows:
        raise InputError("no correct row of a run with --gpus of more than 1")
    return rows


def speedup(row):
    return row["split"]["one_gpu_us"] / row["hot"]["median_us"] if row["split"]["one_gpu_us"] else None


def of_full_overlap(row):
    """What the longer of the gather and the product takes, of what both take together."""
    return max(row["split"]["transfer_us"], row["split"]["product_us"]) / row["hot"]["median_us"]


def order_of(row):
    return "" if row["reorder"] == "none" else f" [{row['reorder']}]"


def split_of(row):
    return f"`{row['split']['name']}`{order_of(row)}"


def table(rows):
    """Lines: of each split, number of GPUs and N the geometric means over its cases."""
    groups = collections.defaultdict(list)
    for row in rows:
        groups[split_of(row), row["split"]["gpus"], row["n"]].append(row)
    yield "| split | GPUs | N | cases | over one GPU | share of the bound | of full overlap | pays | foreseen |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for (name, gpus, n), of_group in sorted(groups.items()):
        known = [row for row in of_group if speedup(row)]
        over = f"{geomean([speedup(row) for row in known]):.2f}" if known else "-"
        pays = sum(row["split"]["pays"] for row in known)
        foreseen = sum(row["split"]["pays"] == row["split"]["should_pay"] for row in known)
        bound = geomean([row["of_bound"] for row in of_group])
        overlap = geomean([of_full_overlap(row) for row in of_group])
        cells = [name, gpus, n, len(of_group), over, f"{bound:.2f}", f"{overlap:.2f}", pays, f"{foreseen} of {len(known)}"]
        yield f"| {' | '.join(map(str, cells))} |"


def weak(rows):
    """Lines: of each split and number G of GPUs the time of one GPU over that of G with G times the nonzeros."""
    alone = collections.defaultdict(dict)  # a case but for its size -> nonzeros -> time on one GPU
    ratios = collections.defaultdict(list)

    def family(row):
        return (row["matrix"]["name"].partition("?")[0], row["n"], row["kernel"], row["precision"], row["reorder"])

    generated = [row for row in rows if "?" in row["matrix"]["name"] and row["split"]["one_gpu_us"]]
    for row in generated:
        alone[family(row)][row["matrix"]["nnz"]] = row["split"]["one_gpu_us"]
    for row in generated:
        part = row["matrix"]["nnz"] / row["split"]["gpus"]
        for nonzeros, us in alone[family(row)].items():
            if abs(nonzeros - part) <= SAME_SIZE * part:
                ratios[split_of(row), row["split"]["gpus"], row["n"]].append(us / row["hot"]["median_us"])
    if ratios:
        yield from ("", "| split | GPUs | N | cases | weak scaling |", "|---|---:|---:|---:|---:|")
    for (name, gpus, n), of_group in sorted(ratios.items()):
        yield f"| {name} | {gpus} | {n} | {len(of_group)} | {geomean(of_group):.2f} |"


def product_s(rows, nonzeros, columns, gathered):
    """The time of a part: its nonzeros gather rows of B, and its bytes move once."""
    rate = GATHER if gathered * columns * VALUE < CACHE else COPY
    gathers = nonzeros * max(columns * VALUE, SECTOR) / (rate * 1e9)
    moved = nonzeros * (VALUE + INDEX) + (gathered * VALUE + rows * RESULT) * columns
    return max(gathers, moved / (COPY * 1e9))


def on_paper(vertices, nonzeros, n, share, link, network):
    """Lines: the time of a product of each split, in ms, over numbers of GPUs; - where memory is short."""
    yield "| GPUs | columns | rows, all of B | rows, needed | grid |"
    yield "|---:|---:|---:|---:|---:|"
    for gpus in (1, 2, 4, 8, 16, 64, 256, 1024):
        rate = link if gpus <= GPUS_OF_A_HOST else network
        cells = []
        grid = next(r for r in range(int(gpus**0.5), 0, -1) if gpus % r == 0)
        for parts, sides, received in ((1, gpus, 0), (gpus, 1, 1), (gpus, 1, share), (gpus // grid, grid, 1)):
            columns, rows, entries = n / sides, vertices / parts, nonzeros / parts
            of_others = received * (vertices - rows)
            held = entries * (VALUE + INDEX) + ((rows + of_others) * VALUE + rows * RESULT) * columns
            seconds = product_s(rows, entries, columns, rows + of_others) + of_others * columns * VALUE / (rate * 1e9)
            cells.append("-" if held > MEMORY or columns < 1 else f"{seconds * 1e3:.1f}")
        yield f"| {gpus} | {' | '.join(cells)} |"


def draw(rows):
    counts = {row["split"]["gpus"] for row in rows}
    return over_gpus(rows) if len(counts) > 1 else by_matrix(rows, *counts)


def by_matrix(rows, gpus):
    """The speed-up of each matrix and kernel by one number of GPUs, by the share of B that is received."""
    from figures.style import COLOURS, INK, MARKERS, plain_log, plt

    shares, marks = {}, collections.defaultdict(list)
    for row in filter(speedup, rows):
        part, case = row["split"], (row["matrix"]["name"] + order_of(row), row["kernel"])
        needed = part["received_share"] or 1  # `columns` needs no row, which says nothing of the others
        shares[case] = min(shares.get(case, 1), needed)
        marks[f"{part['name']}, N = {row['n']}"].append((case, speedup(row)))
    cases = sorted(shares, key=lambda case: (-shares[case], case))
    figure, axes = plt.subplots(figsize=(WIDTH_INCHES, 1.2 + LINE_INCHES * len(cases)))
    for (label, points), colour, marker in zip(sorted(marks.items()), COLOURS, MARKERS):
        places = [cases.index(case) for case, _ in points]
        axes.plot([ratio for _, ratio in points], places, marker, color=colour, label=label)
    axes.axvline(1, color=INK, linewidth=1)
    axes.axvline(gpus, color=INK, linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(cases)), [f"{matrix}, {kernel}: {shares[matrix, kernel]:.3f}" for matrix, kernel in cases])
    axes.set(xscale="log", xlabel=f"speed-up over one GPU: right of 1 the split pays, {gpus} is ideal")
    axes.set_title(f"{gpus} GPUs; beside each case the share that is needed of the rows of B that others have")
    plain_log(axes, "x")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def over_gpus(rows):
    """A panel for each split: its speed-up over numbers of GPUs."""
    from figures.style import COLOURS, GRID, INK, plt

    splits = sorted({row["split"]["name"] for row in rows})
    figure, panels = plt.subplots(1, len(splits), figsize=(3.2 * len(splits) + 1, 3.4), sharey=True, squeeze=False)
    for panel, name in zip(panels[0], splits):
        series = collections.defaultdict(dict)  # a case -> GPUs -> speed-up
        for row in rows:
            if row["split"]["name"] == name and speedup(row):
                case = (row["matrix"]["name"], row["n"], row["kernel"], row["precision"], row["reorder"])
                series[case][row["split"]["gpus"]] = speedup(row)
        counts = sorted({gpus for points in series.values() for gpus in points})
        for points in series.values():
            panel.plot([1, *points], [1, *points.values()], color=GRID, linewidth=0.8, marker=".", markersize=3)
        means = [geomean([points[gpus] for points in series.values() if gpus in points]) for gpus in counts]
        panel.plot([1, *counts], [1, *means], color=COLOURS[0], linewidth=2, marker="o", label="geometric mean")
        panel.plot([1, *counts], [1, *counts], color=INK, linewidth=0.8, linestyle=":", label="GPUs")
        panel.set(xscale="log", yscale="log", xlabel="GPUs", title=f"{name}: {numbered(len(series), 'case')}")
        panel.set_xticks([1, *counts], [str(gpus) for gpus in (1, *counts)])
        panel.minorticks_off()
    panels[0][0].set_ylabel("speed-up over one GPU")
    panels[0][0].legend(frameon=False)
    return figure


def parse_arguments(argv):
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="JSON of spmmbench run --gpus, or a CSV as in results/h200/scaling.csv")
    parser.add_argument("--figure", type=pathlib.Path, help="png, svg or pdf")
    parser.add_argument("--paper", metavar="ROWS,NNZ,N", help="a square graph that no GPU need hold")
    parser.add_argument("--share", type=float, default=0.2, help="of the rows of others that are needed; default: 0.2")
    parser.add_argument("--network", type=float, default=50, help="into a GPU, 1e9 bytes a second; default: 50 (400 Gbit/s)")
    args = parser.parse_args(argv)
    if args.paper:
        try:
            rows, nonzeros, columns = (float(number) for number in args.paper.split(","))
            assert min(rows, nonzeros, columns) >= 1
        except (ValueError, AssertionError):
            parser.error(f"--paper {args.paper}: expected ROWS,NNZ,N")
        args.paper = [rows, nonzeros, columns]
    return args


def main(argv):
    args = parse_arguments(argv)
    rows = split_rows([recorded(path) if path.endswith(".csv") else load_document(path) for path in args.results])
    print("\n".join([*table(rows), *weak(rows)]))
    links = [row["split"]["link_gb_per_s"] for row in rows if row["split"].get("link_gb_per_s") is not None]
    if args.paper and not links:
        raise InputError("--paper: expected documents, whose rows have the rate of the link")
    if args.paper:
        link = max(links)
        print("\n".join(["", *on_paper(*args.paper, args.share, link, args.network)]))
    if args.figure:
        require("matplotlib")
        from plot import picture

        write_whole(args.figure, picture(draw(rows), args.figure.suffix[1:]))
    return 0


if __name__ == "__main__":
    run(lambda: main(sys.argv[1:]))
