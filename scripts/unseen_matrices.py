#!/usr/bin/env python3
"""Writes sparse matrices of families that no generator of spmmbench makes, as scipy .npz files.

  scripts/unseen_matrices.py OUT [--set first|second|third]

`auto` is judged by them, and its coefficients are fitted to none of the sets. The same matrices come out every time: the
seeds are fixed, and so is the order of the draws. Takes about two minutes for the first set, ten seconds for the second,
thirty for the third.
"""

import argparse
import pathlib

from command_line import Parser, require, run

require("numpy", "scipy")

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
import unseen_first  # noqa: E402
import unseen_second  # noqa: E402
import unseen_third  # noqa: E402

SETS = {"first": unseen_first, "second": unseen_second, "third": unseen_third}


def main():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, metavar="OUT", help="folder; made where it is missing")
    parser.add_argument("--set", choices=SETS, default="first", help="28 matrices, 30 others, or 41 with odd rows (%(default)s)")
    args = parser.parse_args()
    families = SETS[args.set]
    args.out.mkdir(parents=True, exist_ok=True)
    for name, a in families.matrices():
        a = sp.csr_matrix(a)
        a.sum_duplicates()
        a.sort_indices()
        a.data = families.draw.uniform(-1, 1, a.nnz).astype(np.float32)
        sp.save_npz(args.out / f"{name}.npz", a, compressed=False)
        print(f"{name}: {a.shape[0]} x {a.shape[1]}, {a.nnz} nonzeros", flush=True)


if __name__ == "__main__":
    run(main)
