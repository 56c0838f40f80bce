#!/usr/bin/env python3
"""One self-contained HTML page from the JSON that `spmmbench run --json` writes.

  report.py results.json --out report.html
  report.py h200/*.json --title 'H200, November'
  report.py before.json after.json        two runs side by side
  report.py results.json --groups groups.csv

Every kernel, figures, the answer of each matrix, every measurement with its samples, and how each number
was obtained. The page opens without a network and asks for nothing from elsewhere.
"""

import argparse
import pathlib
import sys

from command_line import Parser, require, run
from figures import BASELINES
from result_data import load_document, readable, write_whole
from result_series import load_groups


def main(argv):
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="JSON of spmmbench run")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("report.html"))
    parser.add_argument("--title")
    parser.add_argument("--groups", help="CSV with the columns name and group (or kind)")
    parser.add_argument(
        "--baseline",
        choices=BASELINES,
        help="of the speed-ups; default: the first of these that the run has",
    )
    args = parser.parse_args(argv)
    require("jinja2", "matplotlib")
    import report_page

    documents = [load_document(path) for path in args.results]
    groups = load_groups(args.groups) if args.groups else None
    title = readable(args.title) if args.title else None
    write_whole(args.out, report_page.page(documents, title, args.baseline, groups).encode("utf-8"))
    print(readable(str(args.out)))
    return 0


if __name__ == "__main__":
    run(lambda: main(sys.argv[1:]))
