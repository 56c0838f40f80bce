#!/usr/bin/env python3
"""Figures from the JSON that `spmmbench run --json` writes.

  plot.py results.json --out figures
  plot.py results.json --only speedup_distribution,roofline --format pdf --kernels 'rsh*,cusparse*'
  plot.py results.json --groups groups.csv     matrices grouped by the columns name and group

Each figure names its device, date, revision, N and precision, and what it leaves out. A figure whose
data the documents do not hold is not written, with a line that says why. With --kernels, all kernels
still count in what the drawn ones are compared with.
"""

import argparse
import io
import pathlib
import sys

from command_line import Parser, require, run
from figures import BASELINES, FIGURES, draw
from result_data import load_document, readable, write_whole
from result_series import Results, load_groups

FORMATS = ("png", "svg", "pdf")
DOTS_PER_INCH = 160


def picture(figure, extension):
    """The figure as bytes, the same for the same data."""
    out = io.BytesIO()
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure.savefig(
        out, format=extension, dpi=DOTS_PER_INCH, bbox_inches="tight", metadata=dates.get(extension)
    )
    return out.getvalue()


def parse_arguments(argv):
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="JSON of spmmbench run")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("figures"))
    parser.add_argument("--format", default="png,svg", help="of png, svg, pdf; default: png,svg")
    parser.add_argument("--only", default="", help=", ".join(FIGURES))
    parser.add_argument("--prefix", default="", help="of the file names")
    parser.add_argument("--kernels", default="*", help="globs of those drawn, comma-separated")
    parser.add_argument("--groups", help="CSV with the columns name and group (or kind)")
    parser.add_argument(
        "--baseline",
        choices=BASELINES,
        help="of the speed-ups; default: the first of these that the run has",
    )
    args = parser.parse_args(argv)
    args.only = [name for name in args.only.split(",") if name]
    args.format = args.format.split(",")
    if unknown := set(args.only) - set(FIGURES):
        parser.error(
            f"no figure is called {', '.join(sorted(unknown))}; there are {', '.join(FIGURES)}"
        )
    if unknown := set(args.format) - set(FORMATS):
        parser.error(f"no format {', '.join(sorted(unknown))}; there are {', '.join(FORMATS)}")
    if args.out.exists() and not args.out.is_dir():
        parser.error(f"--out {readable(str(args.out))}: expected a folder")
    return args


def main(argv):
    args = parse_arguments(argv)
    require("matplotlib")
    from figures.style import plt

    documents = [load_document(path) for path in args.results]
    groups = load_groups(args.groups) if args.groups else None
    results = Results(documents, groups, args.kernels.split(","))
    args.out.mkdir(parents=True, exist_ok=True)
    for name, figure, reason in draw(results, args.baseline, args.only):
        if figure is None:
            print(f"{name}: left out: {reason}", file=sys.stderr)
            continue
        paths = [args.out / f"{args.prefix}{name}.{extension}" for extension in args.format]
        for path in paths:
            write_whole(path, picture(figure, path.suffix[1:]))
        plt.close(figure)
        print(*(readable(str(path)) for path in paths))
    return 0


if __name__ == "__main__":
    run(lambda: main(sys.argv[1:]))
