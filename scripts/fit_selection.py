#!/usr/bin/env python3
"""Makes the coefficients of selection (src/select/coefficients.hpp) from recorded runs.

  scripts/fit_selection.py [RUN.json...] [--write]      without a run: results/selection/cases.json again

A run that can be used has rows of `auto`, which carry the features of their matrix, beside rows of
the kernels to choose among. For every kernel, precision and range of N the terms of
src/select/predict.hpp get the non-negative coefficients of least squared relative error; then each
kernel gets a margin, so that ranking by margin x prediction loses least. Printed is what ranking
loses on matrices that were left out (six parts by matrix): the chosen kernel's time over the
fastest's. --write writes the table and results/selection/cases.json, which a host test replays.
"""

import argparse
import collections
import json
import math
import pathlib
import sys

import numpy as np
from scipy.optimize import nnls

ROOT = pathlib.Path(__file__).resolve().parents[1]
TERMS = ["launch", "a_csr", "b", "c", "gather_rows", "gather_spill", "gather_window", "tiles", "nonzeros",
         "rows", "longest_row", "variation", "dense_flops", "dense_a", "block_steps", "dense_depth", "dense_odd"]  # fmt: skip
COMMON = {"launch", "a_csr", "b", "c", "longest_row", "variation", "rows"}
DENSE = {"launch", "c", "b", "dense_flops", "dense_a", "dense_depth", "dense_odd"}
FAMILIES = {  # terms that a kernel's time is made of
    "async_wcsr": COMMON | {"gather_window", "gather_spill", "tiles"},
    "rsh": COMMON | {"gather_window", "gather_spill", "tiles"},
    "async_bcsr": {"launch", "b", "c", "block_steps"},
    "bitmap_dense": DENSE | {"a_csr"},
    "cublas_dense": DENSE,
}
ROWS = COMMON | {"gather_rows", "gather_spill", "nonzeros"}
MOST = 2**31 - 1
WIDE_BANDS = [(1, 32), (33, 128), (129, MOST)]
BANDS = {"fp16": [(1, 1), (2, 32), (33, 64), (65, 128), (129, MOST)], "tf32": WIDE_BANDS, "fp32": WIDE_BANDS}
# No term counts the padding of the block formats, and ALG3's time is off by a factor of two whatever the terms.
NO_CANDIDATES = {"cusparse_blocked_ell", "cusparse_bsr", "cusparse_csr_alg3"}
PARTS = 6
FEWEST_CASES = 12
MARGINS = (0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4)
VALUE_BYTES = {"fp32": 4, "tf32": 4, "fp16": 2}

Case = collections.namedtuple("Case", "matrix n precision features device times prepare_ms")


def device_of(context):
    """The rates of src/select/device_model.cpp."""
    device = context["device"]
    sms = device["sm_count"]
    return {"memory": context["copy_gb_per_s"] * 1e3, "gather": 8.8e6 * sms / 132, "flops": 7.6e8 * sms / 132,
            "l2": device["l2_bytes"], "sms": sms}  # fmt: skip


def read_cases(paths):
    cases = {}
    for path in paths:
        document = json.loads(pathlib.Path(path).read_text())
        if "cases" in document:  # written by --write
            for c in document["cases"]:
                cases[c["matrix"], c["n"], c["precision"]] = Case(
                    c["matrix"], c["n"], c["precision"], c["features"], c["device"], c["times_us"], c["prepare_ms"])  # fmt: skip
            continue
        device = device_of(document["context"])
        groups = collections.defaultdict(list)
        for row in document["rows"]:
            if row["status"] == "ok" and row["reorder"] == "none" and row["c_type"] == "fp32":
                groups[row["matrix"]["name"], row["n"], row["precision"]].append(row)
        for (matrix, n, precision), rows in groups.items():
            features, times, prepare = {}, {}, {}
            for row in rows:
                if row["kernel"].split("?")[0] == "auto":
                    features = {k[8:]: v for k, v in row["metrics"].items() if k.startswith("feature_")}
                elif precision in VALUE_BYTES and row["kernel"] not in NO_CANDIDATES:
                    times[row["kernel"]] = row["hot"]["median_us"]
                    prepare[row["kernel"]] = sum(v for k, v in row["stages_ms"].items() if k != "load")
            if features and times:
                cases[matrix, n, precision] = Case(matrix, n, precision, features, device, times, prepare)
    return list(cases.values())


def per_sm(count, device):
    return count / device["sms"] / 100


def dense_depth(f, tiles_of_c, device):
    columns = f["cols"]
    if tiles_of_c <= 0.25 * device["sms"]:
        columns = min(columns, 2304) + max(0, columns - 2304) / 3
    return math.ceil(tiles_of_c / device["sms"]) * columns / 1000


def terms_of(case):
    """The terms of src/select/predict.cpp, in the order of TERMS."""
    f, device, n = case.features, case.device, case.n
    value_bytes = VALUE_BYTES[case.precision]
    row_bytes = math.ceil(n * value_bytes / 16) * 16
    b_bytes = f["cols"] * row_bytes
    gathered = f["nnz"] * math.ceil(row_bytes / 32) * 32
    spilled = max(0.0, 1 - 0.6 * device["l2"] / max(b_bytes, 1.0))
    pieces = math.ceil(row_bytes / 256)
    waves = math.ceil(math.ceil(f["rows"] / 128) * math.ceil(n / 128) / device["sms"])
    depth = dense_depth(f, math.ceil(f["rows"] / 128) * math.ceil(n / 128), device)
    windows = []
    for height, slowdown in ((8, 1.0), (16, 1.25), (32, 1.9)):
        gather = f[f"gathered_{height}"] * f["nnz"] * row_bytes / device["gather"]
        tiles = per_sm(max(f[f"stored_{height}"] * f["nnz"] / 16, f["rows"] / height) * math.ceil(row_bytes / 128), device)
        windows.append(((gather + 0.25 * tiles) * slowdown, gather, tiles * slowdown))
    best = min(windows, key=lambda window: window[0])
    return [1.0, (f["nnz"] * (4 + value_bytes) + f["rows"] * 8) / device["memory"], b_bytes / device["memory"],
            f["rows"] * n * 4 / device["memory"], gathered / device["gather"], gathered * spilled / device["memory"],
            best[1], best[2], per_sm(f["nnz"] * pieces, device), per_sm(f["rows"] * pieces, device),
            min(f["max_row"], 4000.0) / 1000, min(f["cv_row"], 3.0),
            waves * device["sms"] * 128 * 128 * 2 * f["cols"] / device["flops"],
            f["rows"] * f["cols"] * value_bytes / device["memory"],
            math.ceil(math.ceil(f["rows"] / 128) * math.ceil(n / 256) / device["sms"]) * f["band_blocks"],
            depth, depth * (f["cols"] % 8 != 0 or n % 8 != 0)]  # fmt: skip


def band_of(case):
    return next(band for band in BANDS[case.precision] if band[0] <= case.n <= band[1])


def relative_fit(matrix, wanted):
    """Non-negative coefficients whose logarithmic error is least, by reweighted relative errors."""
    scaled = matrix / wanted[:, None]
    weights = np.ones(len(wanted))
    for _ in range(6):
        coefficients, _ = nnls(scaled * weights[:, None], weights)
        weights = 1 / np.sqrt(np.maximum(scaled @ coefficients, 0.2))
    return coefficients


def fit(cases, terms):
    """(kernel, precision, band) -> coefficients of TERMS and of preparation."""
    table = {}
    groups = collections.defaultdict(list)
    for index, case in enumerate(cases):
        for kernel in case.times:
            groups[kernel, case.precision, band_of(case)].append(index)
    for key, members in groups.items():
        if len(members) < FEWEST_CASES:
            continue
        kernel = key[0]
        allowed = [t in FAMILIES.get(kernel.split("?")[0], ROWS) for t in TERMS]
        matrix = np.array([terms[i] for i in members]) * np.array(allowed)
        us = relative_fit(matrix, np.array([cases[i].times[kernel] for i in members]))
        sizes = np.array([[1, f["nnz"] / 1e6, f["rows"] / 1e6, f["rows"] * f["cols"] / 1e6 if kernel.startswith("cublas") else 0]
                          for f in (cases[i].features for i in members)])  # fmt: skip
        prepare = relative_fit(sizes, np.maximum(np.array([cases[i].prepare_ms[kernel] for i in members]), 0.01))
        table[key] = {"us": us, "prepare_ms": prepare, "margin": 1.0}
    return table


def predictions(case, terms, table):
    keys = {kernel: (kernel, case.precision, band_of(case)) for kernel in case.times}
    return {kernel: float(table[key]["us"] @ np.array(terms)) for kernel, key in keys.items() if key in table}


def set_margins(cases, terms, table):
    """Coordinate descent on the loss of ranking; large single losses count more than the mean."""
    by_group = collections.defaultdict(list)
    for case, t in zip(cases, terms):
        found = predictions(case, t, table)
        if len(found) > 1:
            by_group[case.precision, band_of(case)].append((case, found))

    def loss(group, precision, band):
        total = 0
        for case, found in group:
            pick = min(found, key=lambda k: found[k] * table[k, precision, band]["margin"])
            regret = math.log(case.times[pick] / min(case.times[k] for k in found))
            total += regret + 2 * regret * regret
        return total

    for (precision, band), group in by_group.items():
        keys = [key for key in table if key[1] == precision and key[2] == band]
        for _ in range(3):
            for key in keys:
                tried = []
                for margin in MARGINS:
                    table[key]["margin"] = margin
                    tried.append((loss(group, precision, band), abs(math.log(margin)), margin))
                table[key]["margin"] = min(tried)[2]


def regrets(cases, terms, table):
    out = []
    for case, t in zip(cases, terms):
        found = predictions(case, t, table)
        if found:
            pick = min(found, key=lambda k: found[k] * table[k, case.precision, band_of(case)]["margin"])
            out.append((case.times[pick] / min(case.times.values()), case, pick))
    return out


def mean(values):
    return math.exp(sum(math.log(v) for v in values) / max(len(values), 1))


def cross_validated(cases, terms):
    names = sorted({case.matrix for case in cases})
    out = []
    for part in range(PARTS):
        left_out = set(names[part::PARTS])
        inside = [i for i, case in enumerate(cases) if case.matrix not in left_out]
        outside = [i for i, case in enumerate(cases) if case.matrix in left_out]
        table = fit([cases[i] for i in inside], [terms[i] for i in inside])
        set_margins([cases[i] for i in inside], [terms[i] for i in inside], table)
        out += regrets([cases[i] for i in outside], [terms[i] for i in outside], table)
    return out


def write_table(table, path):
    def numbers(values):
        return ", ".join(f"{v:.5g}" for v in values)

    rows = [f'    {{"{kernel}", Precision::{precision}, {band[0]}, {band[1]}, {{{numbers(row["us"])}}}, '
            f'{{{numbers(row["prepare_ms"])}}}, {row["margin"]:g}}},'
            for (kernel, precision, band), row in sorted(table.items())]  # fmt: skip
    path.write_text(f"""#pragma once
// Made by scripts/fit_selection.py; results/selection/cases.json has what it was made from.

#include <array>
#include <cstdint>
#include <string_view>

#include "spmmbench/precision.hpp"

namespace spmmbench {{

struct Coefficients {{
  std::string_view candidate;  // a kernel's Spec
  Precision precision;
  std::int64_t least_n, most_n;      // columns of B that the row is for
  std::array<double, {len(TERMS)}> us;         // factors of the terms in the order of Terms (predict.hpp)
  std::array<double, 4> prepare_ms;  // constant, per million nonzeros, rows, entries of dense A
  double margin;                     // factor of the prediction when kernels are ranked
}};

// clang-format off
inline constexpr std::array<Coefficients, {len(rows)}> kCoefficients = {{{{
{chr(10).join(rows)}
}}}};
// clang-format on

}}  // namespace spmmbench
""")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    recorded = ROOT / "results/selection/cases.json"
    parser.add_argument("runs", nargs="*", metavar="RUN.json", default=[recorded])
    parser.add_argument("--write", action="store_true", help="write the table and the cases of the test")
    arguments = parser.parse_args()
    cases = read_cases(arguments.runs)
    if not cases:
        sys.exit("fit_selection: no case has a row of auto (whose metrics hold the features) and rows of other kernels")
    terms = [terms_of(case) for case in cases]
    left_out = cross_validated(cases, terms)
    print(f"{len(cases)} cases; on matrices left out, chosen over fastest, geometric mean and worst:")
    for precision, band in sorted({(case.precision, band_of(case)) for case in cases}):
        group = [r for r in left_out if (r[1].precision, band_of(r[1])) == (precision, band)]
        if group:
            ratio, case, pick = max(group, key=lambda r: r[0])
            print(f"  {precision} N {band[0]:>2} to {min(band[1], 999):<3}  {mean([r[0] for r in group]):.3f}  {ratio:.2f} "
                  f"({case.matrix}, N = {case.n}: {pick})")  # fmt: skip
    print(f"  all             {mean([r[0] for r in left_out]):.3f}")
    if not arguments.write:
        return
    table = fit(cases, terms)
    set_margins(cases, terms, table)
    write_table(table, ROOT / "src/select/coefficients.hpp")
    inside = regrets(cases, terms, table)
    replay = {
        "mean_regret": mean([r[0] for r in inside]),
        "mean_regret_left_out": mean([r[0] for r in left_out]),
        "cases": [{"matrix": c.matrix, "n": c.n, "precision": c.precision, "features": c.features, "device": c.device,
                   "times_us": c.times, "prepare_ms": c.prepare_ms, "predicted_us": predictions(c, t, table)} for c, t in zip(cases, terms)],
    }  # fmt: skip
    recorded.write_text(json.dumps(replay, separators=(",", ":")).replace('{"matrix"', '\n{"matrix"') + "\n")


if __name__ == "__main__":
    main()
