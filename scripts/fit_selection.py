#!/usr/bin/env python3
"""Makes the coefficients of selection (src/select/coefficients.hpp) from recorded runs.

  scripts/fit_selection.py [--features INSPECT.json] [--terms PROGRAM] [FILE...] [--write]

FILE is a run (.json), medians of one (.csv with matrix, n, precision, kernel, status, hot_median_us and prepare_ms), or the cases that
--write wrote; without any: results/selection/cases.json again. A later file replaces the times of the same case on the same device; what
it did not run again is scaled by what the cuSPARSE rows of both took. A .csv is of the device that the first file with a device names.
Features of matrices come from rows of `auto`, or from `spmmbench inspect MATRIX... --formats csr --json`.

PROGRAM, a part of the tests (build with -DSPMMBENCH_TESTS=ON), computes the terms of src/select/predict.hpp. Build it again before a fit
when they have changed. For every kernel, precision and range of N the terms get the non-negative coefficients of least squared relative
error; then each kernel gets a margin, so that ranking by margin x prediction loses least. Printed is what ranking loses on matrices that
were left out, the chosen kernel's time over the fastest's, the same of the fastest trial, and of preparation + calls x time: in six parts
by matrix, and with one half of the matrices fitted and the other reported, both ways. --write writes the table and
results/selection/cases.json, which a host test replays.
"""

import argparse
import collections
import csv
import json
import math
import pathlib
import subprocess
import sys

import numpy as np
from scipy.optimize import nnls
from result_data import geomean as geometric_mean

ROOT = pathlib.Path(__file__).resolve().parents[1]
TERMS_PROGRAM = ROOT / "build/release/tests/spmmbench_selection_terms"
COMMON = {"launch", "a_csr", "b", "c", "spill", "longest_row", "variation", "rows"}
WINDOWS = COMMON | {"gather_window", "gather_spill", "tiles", "window_parts", "window_depth"}
ORDERED = {"ordered_gather", "ordered_tiles"}
ROWS = COMMON | {"gather_rows", "gather_distinct", "gather_spill", "nonzeros"}
JAGGED = ROWS | {"loads", "mean_row", "scattered"}
FAMILIES = {  # terms that a kernel's time is made of; ROWS where it is not named
    "async_wcsr": WINDOWS - {"rows"} | {"filled_rows"},
    "async_wcsr?order=search": WINDOWS - {"rows"} | {"filled_rows"} | ORDERED,
    "rsh": WINDOWS | ORDERED,
    "csr_row_split": ROWS | {"uneven_rows", "mean_row"},
    "jagged_slices": JAGGED,
    "jagged_slices?order=search": JAGGED | {"ordered_rows", "ordered_scattered"},
    "async_bcsr": {"launch", "b", "c", "block_steps", "block_spill"},
    "bitmap_dense": {"launch", "b", "c", "positions", "nonzeros", "bitmap_spill", "dense_odd"},
    "gap_slices": {"launch", "b", "c", "rows", "nonzeros", "gaps", "gap_spill", "variation", "mean_row"},
    "gather_mma": {"launch", "b", "c", "slots", "slot_groups", "slot_passes", "longest_row"},
    "two_four": {"launch", "b", "c", "longest_row", "dense_flops", "dense_depth", "packed", "packed_spill"},
    "dense_cluster": {"launch", "cluster_us", "cluster_copies", "dense_a", "dense_spill"},
    "cublas_dense": {"launch", "b", "c", "dense_flops", "dense_a", "dense_spill", "dense_depth", "dense_odd", "dense_a_odd"},
}
# Coefficients that are at least 1 because nothing can be faster; no recorded case of scattered nonzeros shows it.
IDEAL = {"block_spill"}
SIZES = {"constant", "nonzeros", "rows"}
SEARCHED = SIZES | {"search", "search_nonzeros", "search_rows"}
PREPARE_FAMILIES = {  # the same of its preparation; SIZES where it is not named
    "cublas_dense": SIZES | {"entries"},
    "dense_cluster": SIZES | {"entries"},
    "async_bcsr": SIZES | {"stored"},
    "rsh": SEARCHED,
    "async_wcsr?order=search": SEARCHED,
    "jagged_slices?order=search": SEARCHED,
}
MOST = 2**31 - 1
WIDE_BANDS = [(1, 1), (2, 32), (33, 128), (129, MOST)]
BANDS = {"fp16": [(1, 1), (2, 32), (33, 64), (65, 128), (129, MOST)], "tf32": WIDE_BANDS, "fp32": WIDE_BANDS}
# Kernels that gather narrow rows of B in another way at N = 8, 16 and 32: parts of a range, each with coefficients of its own.
NARROW_PARTS = {"fp16": {(2, 32): [(2, 8), (9, 16), (17, 32)]}}
NARROW = {"async_wcsr", "async_wcsr?order=search", "jagged_slices", "jagged_slices?order=search"}
# No term counts the padding of the block formats. Other options of a kernel than its own are no candidates either.
NO_CANDIDATES = {"cusparse_blocked_ell", "cusparse_bsr"}
# Recorded in fp16 at every N, in tf32 at N >= 64 on 49 matrices: predictions from these were off by a factor of 3 on small ones.
FP16_ONLY = {f"cusparse_coo_alg{i}" for i in (1, 2, 3, 4)}
WITH_OPTIONS = {"async_wcsr?order=search", "jagged_slices?order=search"}
NO_MORE = {"scatter_mma"}  # in recorded runs, but no longer in the program
ROW_MAJOR = {"rsh", "csr_row_split"}  # auto takes a vector as column-major, so they cannot run
# Where the first was not run (pruned layers), the time of the second stands for it in the fit: it is the same kernel in the natural order,
# which the first leaves only where another is expected to gain. Where it was run it is fitted to its own times, considered or not.
STANDS_IN = {"async_wcsr?order=search": "async_wcsr", "jagged_slices?order=search": "jagged_slices"}
SEARCH_TIMES = 2  # the preparation of a kernel that has looked for an order over that of the same without
PARTS = 6
FEWEST_CASES = 6
# Factors of a prediction that are tried.
MARGINS = (*(0.85 + step / 40 for step in range(14)), 1.2, 1.3, 1.4)
CALLS = (1, 100, 1000, 100000)
# From DENSE_FROM columns on the margins count it again where a choice takes over 1 / DENSE_SHARE of the time of cuBLAS: DENSE_WEIGHT times
# the logarithm of what lies beyond. With a weight of 2 cases below 0.95 x cuBLAS fall from 22 to 12 and nothing is lost elsewhere. With 10
# bitmap_dense is not picked in cases where it is faster (docs/decisions/selection-model.md).
DENSE_FROM, DENSE_SHARE, DENSE_WEIGHT = 64, 0.97, 2
# Of a case in which the kernel takes over NEAR times the least time: what it takes there decides nothing.
NEAR, FAR_WEIGHT = 2, 0.3
# The factor of a penalty, without which few cases give one term what several share (docs/decisions/selection-model.md).
RIDGE = 0.005
# The trials of auto: so many, predicted to take less than so many times the best prediction or the fastest trial (src/select/tune.cpp).
MOST_TRIALS, LONGER = 8, 1.4
NOT_ASKED = ("feature_row_overlap", 1)  # what a row of auto has where it did not need to know
DIGITS = 6  # significant ones that are kept of what was recorded

Case = collections.namedtuple("Case", "device_name matrix n precision layout features device times prepare_ms")
Terms = collections.namedtuple("Terms", "names values")  # values: an array with a row for each case


def rounded(values):
    return {key: float(f"{value:.{DIGITS}g}") for key, value in values.items()}


def family_of(kernel):
    return FAMILIES.get(kernel, ROWS)


def device_of(context):
    """The rates as src/select/device_model.cpp takes them: those of an H200 where a run did not measure them."""
    device = context["device"]
    sms = device["sm_count"]
    gather = context.get("gather_gb_per_s") or 9.3e3 * sms / 132
    dense = context.get("dense_tflops") or 760 * sms / 132
    return rounded({"memory": context["copy_gb_per_s"] * 1e3, "gather": gather * 1e3, "flops": dense * 1e6,
                    "l2": device["l2_bytes"], "sms": sms})  # fmt: skip


def is_candidate(kernel, precision, n):
    if precision not in BANDS or kernel in NO_CANDIDATES | NO_MORE or (n == 1 and kernel in ROW_MAJOR):
        return False
    if precision != "fp16" and kernel in FP16_ONLY:
        return False
    return "?" not in kernel or kernel in WITH_OPTIONS


def layout_of(n, layout):
    """A matrix of one column is the same in both layouts."""
    return "row" if n == 1 else layout


def read_runs(path):
    """(device, matrix, n, precision, layout) -> {kernel: (us, ms)}; matrix -> features; device -> rates. In a .csv the device is None."""
    times, features = collections.defaultdict(dict), {}
    if path.suffix == ".csv":
        with path.open() as file:
            rows = [row for row in csv.DictReader(file) if row["status"] == "ok" and row["prepare_ms"] and row.get("build", "now") == "now"]
        for row in rows:
            if row["kernel"].split("?")[0] != "auto" and is_candidate(row["kernel"], row["precision"], int(row["n"])):
                key = None, row["matrix"], int(row["n"]), row["precision"], layout_of(int(row["n"]), row.get("layout", "row"))
                times[key][row["kernel"]] = (float(row["hot_median_us"]), float(row["prepare_ms"]))
        return times, features, {}
    document = json.loads(path.read_text())
    if "cases" in document:  # written by --write
        for c in document["cases"]:
            key = c["device"], c["matrix"], c["n"], c["precision"], layout_of(c["n"], c["layout"])
            times[key] |= {k: (us, c["prepare_ms"][k]) for k, us in c["times_us"].items() if is_candidate(k, c["precision"], c["n"])}
        return times, document["matrices"], document["devices"]
    device = document["context"]["device"]["name"]
    for row in document["rows"]:
        if row["status"] != "ok" or row["reorder"] != "none" or row["c_type"] != "fp32":
            continue
        matrix = row["matrix"]["name"]
        if row["kernel"].split("?")[0] == "auto":
            known = {k[8:]: v for k, v in row["metrics"].items() if k.startswith("feature_") and (k, v) != NOT_ASKED}
            features[matrix] = features.get(matrix, {}) | known
        elif is_candidate(row["kernel"], row["precision"], row["n"]):
            prepare = sum(v for k, v in row["stages_ms"].items() if k != "load")
            key = device, matrix, row["n"], row["precision"], layout_of(row["n"], row["layout"])
            times[key][row["kernel"]] = (row["hot"]["median_us"], prepare)
    return times, features, {device: device_of(document["context"])}


def joined(old, new):
    """The times of a case of which some kernels were run again."""
    ratios = [math.log(new[k][0] / old[k][0]) for k in old.keys() & new.keys() if k.startswith("cusparse")]
    scale = math.exp(sum(ratios) / len(ratios)) if ratios else 1.0
    return {k: (us * scale, ms) for k, (us, ms) in old.items()} | new


def read_cases(paths, inspected):
    runs = [read_runs(pathlib.Path(path)) for path in paths]
    times, features, devices = {}, {}, {}
    for _, _, ran_on in runs:
        devices |= {name: rates for name, rates in ran_on.items() if name not in devices}
    if not devices:
        sys.exit("fit_selection: no file says what device it ran on; give a run or the cases as well")
    first = next(iter(devices))
    for more, seen, _ in runs:
        for (device, *case), kernels in more.items():
            key = (device or first, *case)
            times[key] = joined(times[key], kernels) if key in times else kernels
        for matrix, values in seen.items():
            features[matrix] = features.get(matrix, {}) | values
    if inspected:
        features |= {matrix["name"]: matrix["features"] for matrix in json.loads(pathlib.Path(inspected).read_text())}
    features = {matrix: rounded(values) for matrix, values in features.items()}
    return [Case(device, matrix, n, precision, layout, features[matrix], devices[device], rounded({k: v[0] for k, v in kernels.items()}),
                 rounded({k: v[1] for k, v in kernels.items()}))
            for (device, matrix, n, precision, layout), kernels in sorted(times.items()) if matrix in features and len(kernels) > 1]  # fmt: skip


def operands_of(cases):
    """The devices and matrices of cases, as cases.json has them."""
    return {"devices": {c.device_name: c.device for c in cases}, "matrices": {c.matrix: c.features for c in cases}}


def product_of(c):
    return {"device": c.device_name, "matrix": c.matrix, "n": c.n, "precision": c.precision, "layout": c.layout}


def model_of(cases, program):
    """The Terms of a call and of preparation, and for each case the kernels that are worth a prediction and those that are trials alone."""
    document = json.dumps(operands_of(cases) | {"cases": [product_of(c) | {"kernels": list(c.times)} for c in cases]})
    try:
        run = subprocess.run([program], input=document, capture_output=True, text=True, check=False)
    except OSError as error:
        sys.exit(f"fit_selection: {program}: {error.strerror}; build with -DSPMMBENCH_TESTS=ON, or name the program with --terms")
    if run.returncode != 0:
        sys.exit(f"fit_selection: {run.stderr.strip() or f'{program} ended with {run.returncode}'}")
    answer = json.loads(run.stdout)
    terms, prepare_terms = (Terms(answer[kind], np.array([case[kind] for case in answer["cases"]])) for kind in ("terms", "prepare_terms"))
    unknown = ROWS.union(*FAMILIES.values()) - set(terms.names) | SEARCHED.union(*PREPARE_FAMILIES.values()) - set(prepare_terms.names)
    if unknown:
        sys.exit(f"fit_selection: {program} knows no term {', '.join(sorted(unknown))}")
    return terms, prepare_terms, *([case[kind] for case in answer["cases"]] for kind in ("considered", "trials"))


def bands_of(precision, kernel=None):
    """Ranges of N, of the kernel's coefficients if there is one."""
    parts = NARROW_PARTS.get(precision, {}) if kernel in NARROW else {}
    return [part for band in BANDS[precision] for part in parts.get(band, [band])]


def band_of(case, kernel=None):
    return next(band for band in bands_of(case.precision, kernel) if band[0] <= case.n <= band[1])


def relative_fit(matrix, wanted, least, weight, ridge=0.0):
    """Coefficients of at least so much whose weighted logarithmic error is least, by reweighted relative errors. `ridge` times
    the squared shares that each term has of the times is added to the squared errors."""
    used = np.flatnonzero(matrix.any(axis=0))
    scaled = matrix[:, used] / wanted[:, None]
    rest = np.maximum(1 - scaled @ least[used], 0.1)
    penalty = np.diag(np.sqrt(ridge * np.square(scaled).sum(axis=0)))
    nothing = np.zeros(len(used))
    weights = weight
    for _ in range(6):
        found, _ = nnls(np.vstack([scaled * weights[:, None], penalty]), np.concatenate([rest * weights, nothing]))
        weights = weight / np.sqrt(np.maximum(scaled @ (found + least[used]), 0.2))
    coefficients = least.copy()
    coefficients[used] += found
    return coefficients


def fastest_trial(order, predicted, times):
    """The least of the times that auto measures. The first of `order` is the best prediction."""
    fastest, left = math.inf, MOST_TRIALS
    for kernel in order:
        if left > 0 and predicted[kernel] < LONGER * max(predicted[order[0]], fastest):
            fastest, left = min(fastest, times[kernel]), left - 1
    return fastest


class Recorded:
    """Cases with what model_of says of them, and what a table of coefficients makes of them."""

    def __init__(self, cases, terms, prepare_terms, considered, trials):
        self.cases, self.terms, self.prepare_terms, self.considered, self.trials = cases, terms, prepare_terms, considered, trials

    def part(self, chosen):
        members = [index for index, case in enumerate(self.cases) if chosen(case)]
        terms, prepare_terms = (Terms(all_of.names, all_of.values[members]) for all_of in (self.terms, self.prepare_terms))
        cases, considered, trials = ([all_of[index] for index in members] for all_of in (self.cases, self.considered, self.trials))
        return Recorded(cases, terms, prepare_terms, considered, trials)

    def fit(self):
        """(kernel, precision, band) -> coefficients of the terms of a call and of preparation, and a margin."""
        table, groups = {}, collections.defaultdict(list)
        for index, case in enumerate(self.cases):
            for kernel in case.times:
                if kernel in self.considered[index] or kernel in STANDS_IN:
                    groups[kernel, case.precision, band_of(case, kernel)].append(index)
        for key, members in groups.items():
            if len(members) < FEWEST_CASES:
                continue
            kernel = key[0]
            allowed = np.array([t in family_of(kernel) for t in self.terms.names])
            times = {i: self.cases[i].times[kernel] for i in members}
            if kernel in STANDS_IN:
                for i, case in enumerate(self.cases):
                    if (case.precision, band_of(case, kernel)) == key[1:] and kernel not in case.times:
                        if STANDS_IN[kernel] in case.times:
                            times[i] = case.times[STANDS_IN[kernel]]
            weight = np.array([1.0 if us < NEAR * min(self.cases[i].times.values()) else FAR_WEIGHT for i, us in times.items()])
            us = relative_fit(self.terms.values[list(times)] * allowed, np.array(list(times.values())),
                              allowed * np.array([t in IDEAL for t in self.terms.names], float), weight, RIDGE)  # fmt: skip
            allowed = np.array([t in PREPARE_FAMILIES.get(kernel, SIZES) for t in self.prepare_terms.names])
            members = [i for i in members if self.searched(i, kernel)] or members
            prepare = relative_fit(self.prepare_terms.values[members] * allowed,
                                   np.maximum([self.cases[i].prepare_ms[kernel] for i in members], 0.01),
                                   np.zeros(len(allowed)), np.ones(len(members)))  # fmt: skip
            table[key] = {"us": us, "prepare_ms": prepare, "margin": 1.0}
        self.set_margins(table)
        return table

    def searched(self, index, kernel):
        """Whether a kernel that looks for a row order did so. Where it did not it is the same as without, so only the others count."""
        case = self.cases[index]
        without = case.prepare_ms.get(STANDS_IN.get(kernel))
        return kernel in self.considered[index] and (without is None or case.prepare_ms[kernel] > SEARCH_TIMES * without)

    def predictions(self, index, table, kernels=None):
        case = self.cases[index]
        keys = {kernel: (kernel, case.precision, band_of(case, kernel)) for kernel in kernels or self.considered[index]}
        return {kernel: float(table[key]["us"] @ self.terms.values[index]) for kernel, key in keys.items() if key in table}

    def predicted_prepare_ms(self, index, table):
        case = self.cases[index]
        return {kernel: float(table[kernel, case.precision, band_of(case, kernel)]["prepare_ms"] @ self.prepare_terms.values[index])
                for kernel in self.predictions(index, table)}

    def set_margins(self, table):
        """Coordinate descent on the loss of ranking; large single losses count more than the mean, those to cuBLAS again."""
        groups = collections.defaultdict(list)
        for index, case in enumerate(self.cases):
            groups[case.precision, band_of(case)].append(index)
        for (precision, band), members in groups.items():
            keys = sorted(key for key in table if key[1] == precision and band[0] <= key[2][0] and key[2][1] <= band[1])
            predicted = np.full((len(members), len(keys)), np.inf)
            lost = np.full((len(members), len(keys)), np.inf)
            beyond_dense = np.zeros((len(members), len(keys)))
            for row, index in enumerate(members):
                found = self.predictions(index, table)
                times = self.cases[index].times
                for kernel, us in found.items():
                    at = row, keys.index((kernel, precision, band_of(self.cases[index], kernel)))
                    predicted[at] = math.log(us)
                    lost[at] = math.log(times[kernel] / min(times[k] for k in found))
                    if "cublas_dense" in times and self.cases[index].n >= DENSE_FROM:
                        beyond_dense[at] = max(0.0, math.log(DENSE_SHARE * times[kernel] / times["cublas_dense"]))
            ranked = np.isfinite(predicted).any(axis=1)
            predicted, lost, beyond_dense = predicted[ranked], lost[ranked], beyond_dense[ranked]
            margins = np.zeros(len(keys))

            def loss():
                chosen = np.arange(len(lost)), np.argmin(predicted + margins, axis=1)
                regret = lost[chosen]
                return float((regret + 2 * regret * regret + DENSE_WEIGHT * beyond_dense[chosen]).sum())

            for _ in range(3):
                for at in range(len(keys)):
                    tried = []
                    for margin in MARGINS:
                        margins[at] = math.log(margin)
                        tried.append((loss(), abs(math.log(margin)), margin))
                    margins[at] = math.log(min(tried)[2])
            for key, margin in zip(keys, margins):
                table[key]["margin"] = round(math.exp(margin), 3)

    def choices(self, table):
        """For each case: what the choice loses unmeasured and measured, and what it loses of the total of so many calls."""
        out = []
        for index, case in enumerate(self.cases):
            found = self.predictions(index, table)
            if not found:
                continue
            rows = {kernel: table[kernel, case.precision, band_of(case, kernel)] for kernel in found}
            ranks = {kernel: us * rows[kernel]["margin"] for kernel, us in found.items()}
            pick = min(ranks, key=ranks.get)
            also = self.predictions(index, table, self.trials[index]) if self.trials[index] else {}
            order = sorted(ranks, key=ranks.get) + sorted(also, key=also.get)
            fastest = fastest_trial(order, found | also, case.times)
            prepare_ms = self.predicted_prepare_ms(index, table)
            totals = {}
            for calls in CALLS:
                expected = {k: us * calls + 1e3 * prepare_ms[k] for k, us in ranks.items()}
                cost = {k: us * calls + 1e3 * case.prepare_ms[k] for k, us in case.times.items()}
                totals[calls] = cost[min(expected, key=expected.get)] / min(cost.values())
            least = min(case.times.values())
            out.append(Choice(case.times[pick] / least, fastest / least, case, pick, totals))
        return out


Choice = collections.namedtuple("Choice", "loss measured case pick totals")


def left_out(recorded, parts):
    """The choices for each set of matrices by a table that was fitted to the others."""
    out = []
    for part in parts:
        table = recorded.part(lambda case: case.matrix not in part).fit()
        out += recorded.part(lambda case: case.matrix in part).choices(table)
    return out


def measured_text(choices):
    losses = [choice.measured for choice in choices]
    return f"{geometric_mean(losses):.4f}  {sum(loss > 1.1 for loss in losses)}  {max(losses):.2f}"


def report(title, choices):
    print(f"{title}, chosen over fastest: geometric mean, cases above 1.25 and worst; fastest trial: mean, cases above 1.1 and worst:")
    groups = collections.defaultdict(list)
    for choice in choices:
        groups[choice.case.precision, band_of(choice.case)].append(choice)
    for (precision, band), group in sorted(groups.items()):
        worst = max(group, key=lambda choice: choice.loss)
        print(f"  {precision} N {band[0]:>3} to {min(band[1], 999):<3}  {geometric_mean([c.loss for c in group]):.3f}  "
              f"{sum(c.loss > 1.25 for c in group)} of {len(group)}  {worst.loss:.2f} ({worst.case.matrix}, N = {worst.case.n}: {worst.pick}); {measured_text(group)}")  # fmt: skip
    for device in sorted({choice.case.device_name for choice in choices}):
        losses = [c.loss for c in choices if c.case.device_name == device]
        print(f"  {device:<22}  {geometric_mean(losses):.3f}  {sum(loss > 1.25 for loss in losses)} of {len(losses)}")
    for calls in CALLS:
        totals = [c.totals[calls] for c in choices]
        print(f"  preparation + {calls} calls: {geometric_mean(totals):.3f}, worst {max(totals):.2f}")


def write_table(recorded, table, path):
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
  std::array<double, {len(recorded.terms.names)}> us;         // factors of Terms (predict.hpp), in their order
  std::array<double, {len(recorded.prepare_terms.names)}> prepare_ms;  // factors of PrepareTerms, in their order
  double margin;                     // factor of the prediction when kernels are ranked
}};

// clang-format off
inline constexpr std::array<Coefficients, {len(rows)}> kCoefficients = {{{{
{chr(10).join(rows)}
}}}};
// clang-format on

}}  // namespace spmmbench
""")


def write_cases(recorded, table, choices, path):
    cases = [product_of(c) | {"times_us": c.times, "prepare_ms": c.prepare_ms, "predicted_us": rounded(recorded.predictions(i, table)),
              "predicted_prepare_ms": rounded(recorded.predicted_prepare_ms(i, table))} for i, c in enumerate(recorded.cases)]  # fmt: skip
    document = {
        "mean_regret": geometric_mean([c.loss for c in choices]),
        "mean_total": {str(calls): geometric_mean([c.totals[calls] for c in choices]) for calls in CALLS},
        **operands_of(recorded.cases),
        "cases": cases,
    }
    text = json.dumps(document, separators=(",", ":"))
    path.write_text(text.replace('{"device":', '\n{"device":').replace(':{"band_blocks"', ':\n{"band_blocks"') + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cases_path = ROOT / "results/selection/cases.json"
    parser.add_argument("files", nargs="*", metavar="FILE", default=[cases_path])
    parser.add_argument("--features", metavar="INSPECT.json", help="what inspect printed of the matrices")
    parser.add_argument("--terms", metavar="PROGRAM", default=TERMS_PROGRAM, help="what computes the terms (%(default)s)")
    parser.add_argument("--write", action="store_true", help="write the table and the cases of the test")
    arguments = parser.parse_args()
    cases = read_cases(arguments.files, arguments.features)
    if not cases:
        sys.exit("fit_selection: no case has the features of its matrix and rows of two kernels")
    recorded = Recorded(cases, *model_of(cases, arguments.terms))
    names = sorted({case.matrix for case in cases})
    print(f"{len(cases)} cases of {len(names)} matrices")
    report("six parts by matrix", left_out(recorded, [set(names[part::PARTS]) for part in range(PARTS)]))
    # Pairs of names, since what was recorded of a matrix goes by every second name.
    halves = [{name for at, name in enumerate(names) if at // 2 % 2 == half} for half in (0, 1)]
    report("two halves by matrix", left_out(recorded, halves))
    if not arguments.write:
        return
    table = recorded.fit()
    write_table(recorded, table, ROOT / "src/select/coefficients.hpp")
    write_cases(recorded, table, recorded.choices(table), cases_path)


if __name__ == "__main__":
    main()
