#!/usr/bin/env python3
"""Sweeps of the ESMM kernels: over density, or over a tree of pruned weights.

    esmm_sweep.py density [--sizes 1024,2048,4096,8192] [--patterns 11111111,...] [--csv OUT]
    esmm_sweep.py weights TREE [--m ROWS]      every matrix as B, with a random dense A
    esmm_sweep.py pairs TREE                   A x B of one layer and configuration, shapes matching
    esmm_sweep.py qk TREE                      q_proj x k_proj of one layer and configuration
    esmm_sweep.py permuted TREE                col_perm x row_perm of one tensor

TREE holds .npy files and headerless fp32 .bin files named <tensor>.<rows>x<cols>.bin (what
export_weights.py writes; a .bin without sizes in its name is taken as square). Components of the
path name the pruner (wanda, sparsegpt, ...), the group size (grp_8), the permutation (col_perm,
row_perm) and the sparsity (sparsity_0.99); what is missing stays empty. One CSV row per product.

Compute-only times are hot medians with both operands' patterns made beforehand; `total` adds the
extraction of A's patterns to every launch (B's cached), `total_uncached` that of B's as well.
Times of results that failed verification are left empty.
"""

import argparse
import csv
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

from command_line import Parser, find_program, require

try:
    import numpy as np
except ImportError:
    np = None  # main says so

# ESMM readme, NVIDIA A10G, 4096^3, compute only: pattern ones / 8 -> (ESMM ms, cuBLAS SGEMM ms).
PUBLISHED = {8: (12.10, 7.19), 4: (6.12, 7.19), 2: (4.04, 7.19), 1: (2.72, 7.19)}
PATTERNS = "11111111,11110000,11000000,10000000"

# Column: kernel and precision.
KERNELS = {
    "esmm_us": ("esmm", "fp32"),
    "total_us": ("esmm?extract=a", "fp32"),
    "total_uncached_us": ("esmm?extract=ab", "fp32"),
    "esmm_skip_us": ("esmm_skip", "fp32"),
    "esmm_a_us": ("esmm_a", "fp32"),
    "esmm_b_us": ("esmm_b", "fp32"),
    "mma_fp16_us": ("esmm_mma", "fp16"),
    "mma_fp16_total_us": ("esmm_mma?extract=a", "fp16"),
    "mma_fp16_lists_us": ("esmm_mma?path=lists", "fp16"),
    "mma_tf32_us": ("esmm_mma", "tf32"),
    "mma_tf32_total_us": ("esmm_mma?extract=a", "tf32"),
    "mma_tf32_lists_us": ("esmm_mma?path=lists", "tf32"),
}
BASELINES = {"cublas_fp32_us": "fp32", "cublas_tf32_us": "tf32", "cublas_fp16_us": "fp16"}
METRICS = ("a_pattern_us", "b_pattern_us", "a_pattern_density", "b_pattern_density",
           "block_skip_fraction", "warp_skip_fraction", "k_skip_fraction")
TIMES = list(KERNELS) + list(BASELINES)
# Column: cuBLAS over what.
RATIOS = {"speedup": ("cublas_fp32_us", "esmm_us"),
          "speedup_total": ("cublas_fp32_us", "total_us"),
          "speedup_total_uncached": ("cublas_fp32_us", "total_uncached_us"),
          "speedup_esmm_skip": ("cublas_fp32_us", "esmm_skip_us"),
          "speedup_mma_fp16": ("cublas_fp16_us", "mma_fp16_us"),
          "speedup_mma_tf32": ("cublas_tf32_us", "mma_tf32_us")}

STRIP, STEP = 32, 8  # a pattern byte: 32 rows of A or columns of B by 8 inner indices


class SweepError(Exception):
    """Bad input: one line for the user."""


# ---- running spmmbench -------------------------------------------------------------------------


def measure(arguments, case):
    """Runs every kernel of one product; returns {column: value}."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.json"
        kernels = list(dict.fromkeys(kernel for kernel, _ in KERNELS.values()))
        command = [arguments.spmmbench, "run", *case, "--json", str(out), "--no-baselines", "-q",
                   "-k", ",".join([*kernels, "cublas*"]), "--precision", "fp32,tf32,fp16",
                   "--max-seconds", str(arguments.max_seconds)]
        if arguments.dry_run:
            print(" ".join(command))
            return {}
        try:
            done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        except OSError as error:
            text = f"{command[0]}: {error.strerror} (build first, or give --spmmbench)"
            raise SweepError(text) from None
        if done.returncode not in (0, 2, 4) or not out.exists():
            raise SweepError(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
        return collect(json.loads(out.read_text())["rows"])


def collect(rows):
    """The table row of one product from spmmbench's result rows."""
    result = {"status": "ok"}
    for row in rows:
        label = f"{row['kernel']} {row['precision']}"
        if row["status"] == "skipped":
            continue
        if row["status"] != "ok":
            result["status"] = f"{label}: {row['status']} {row['reason']}".strip()
            continue
        median = row["hot"]["median_us"]
        for column, measured in KERNELS.items():
            if (row["kernel"], row["precision"]) == measured:
                result[column] = median
        for column, precision in BASELINES.items():
            if row["kernel"].startswith("cublas") and row["precision"] == precision:
                result[column] = min(median, result.get(column, math.inf))
        if row["kernel"] == "esmm":
            result.update({name: row["metrics"][name] for name in METRICS if name in row["metrics"]})
            result["path"] = row["params"].get("path", "")
    if not any(column in result for column in TIMES):
        reasons = sorted({row["reason"] for row in rows if row["reason"]})
        result["status"] = "; ".join(reasons) or result["status"]
    for ratio, (cublas, column) in RATIOS.items():
        if column in result and cublas in result:
            result[ratio] = result[cublas] / result[column]
    return result


# ---- density -----------------------------------------------------------------------------------


def sweep_density(arguments, write):
    rows = []
    for size in arguments.sizes:
        for pattern in arguments.patterns:
            ones = pattern.count("1")
            row = {"size": size, "pattern": pattern, "density": ones / 8}
            row |= measure(arguments, [f"gen:esmm?size={size}&pattern={pattern}", "-n", str(size)])
            if ones in PUBLISHED and size == 4096:
                esmm_ms, cublas_ms = PUBLISHED[ones]
                row["published_a10g_esmm_us"] = 1000 * esmm_ms
                row["published_a10g_speedup"] = cublas_ms / esmm_ms
            write(row)
            rows.append(row)
    if not arguments.dry_run:
        print_density(rows)


def print_density(rows):
    def cell(row, key, width, digits):
        value = row.get(key)
        return f"{value:{width}.{digits}f}" if isinstance(value, float) else f"{'-':>{width}}"

    print(" size density |    esmm   total    skip | cublas:  fp32     tf32     fp16 |"
          " speed-up  total   skip | A10G | mma: fp16   x cuBLAS     tf32   x cuBLAS")
    for row in rows:
        print(f"{row['size']:5} {row['density']:7.3f} |"
              + cell(row, "esmm_us", 8, 1) + cell(row, "total_us", 8, 1)
              + cell(row, "esmm_skip_us", 8, 1) + " |     "
              + cell(row, "cublas_fp32_us", 9, 1) + cell(row, "cublas_tf32_us", 9, 1)
              + cell(row, "cublas_fp16_us", 9, 1) + " |"
              + cell(row, "speedup", 9, 2) + cell(row, "speedup_total", 7, 2)
              + cell(row, "speedup_esmm_skip", 7, 2) + " |"
              + cell(row, "published_a10g_speedup", 5, 2) + " |"
              + cell(row, "mma_fp16_us", 10, 1) + cell(row, "speedup_mma_fp16", 11, 2)
              + cell(row, "mma_tf32_us", 9, 1) + cell(row, "speedup_mma_tf32", 11, 2))
    print("times in us; speed-ups over cuBLAS fp32; A10G: the published ESMM over cuBLAS there;"
          " mma: esmm_mma over cuBLAS of its precision")
    for size in sorted({row["size"] for row in rows}):
        faster = [row["density"] for row in rows if row["size"] == size
                  and row.get("esmm_us", math.inf) < row.get("cublas_tf32_us", 0)]
        print(f"size {size}: esmm (fp32) faster than cuBLAS tf32 "
              + (f"from density {max(faster):.3f} down" if faster else "at none of these densities"))


# ---- weights -----------------------------------------------------------------------------------


class Weight:
    """One matrix of the tree and what its path says of it."""

    def __init__(self, path, root):
        self.path = path
        below = path.relative_to(root)
        self.rows, self.cols = self.shape()
        self.tensor = re.sub(r"\.\d+x\d+$", "", path.stem)
        text = "/".join(below.parts)
        layer = re.search(r"(?:layers?|blocks?|h)[._]?(\d+)", text)
        self.layer = layer.group(1) if layer else ""
        projection = re.search(r"([a-z0-9]+_proj|fc\d+)", self.tensor)
        self.projection = projection.group(1) if projection else self.tensor
        folders = [part.lower() for part in below.parts[:-1]]
        self.pruner = self.component(folders, r"(wanda|sparsegpt|magnitude|random|alps|ria)\w*")
        self.group_size = self.component(folders, r"(?:grp|group)_?(\d+)")
        self.permutation = self.component(folders, r"((?:col|row|no)_perm)")
        self.sparsity = self.component(folders, r"sparsity_?([0-9.]+)")

    @staticmethod
    def component(folders, expression):
        for folder in folders:
            match = re.fullmatch(expression, folder)
            if match:
                return match.group(1)
        return ""

    def shape(self):
        if self.path.suffix == ".npy":
            shape = np.load(self.path, mmap_mode="r", allow_pickle=False).shape
            if len(shape) != 2:
                raise SweepError(f"{self.path}: {len(shape)}-dimensional, expected a matrix")
            return shape
        named = re.search(r"\.(\d+)x(\d+)$", self.path.stem)
        size = self.path.stat().st_size
        if named:
            rows, cols = int(named.group(1)), int(named.group(2))
        else:
            rows = cols = math.isqrt(size // 4)
        if rows == 0 or rows * cols * 4 != size:
            raise SweepError(f"{self.path}: {size} bytes, expected {rows} x {cols} fp32")
        return rows, cols

    def values(self):
        if self.path.suffix == ".npy":
            return np.load(self.path, allow_pickle=False)
        return np.fromfile(self.path, dtype="<f4").reshape(self.rows, self.cols)

    def configuration(self):
        return (self.pruner, self.group_size, self.permutation, self.sparsity)


def sparsities(values, is_a):
    """Fractions of zero elements and of zero 32 x 8 (A) or 8 x 32 (B) blocks."""
    tall, wide = (STRIP, STEP) if is_a else (STEP, STRIP)
    nonzero = values != 0
    padded = np.pad(nonzero, ((0, -nonzero.shape[0] % tall), (0, -nonzero.shape[1] % wide)))
    blocks = padded.reshape(padded.shape[0] // tall, tall, padded.shape[1] // wide, wide)
    return 1 - nonzero.mean(), 1 - blocks.any(axis=(1, 3)).mean()


def find_weights(root):
    if not root.is_dir():
        raise SweepError(f"{root}: not a directory")
    paths = sorted(p for p in root.rglob("*") if p.suffix in (".bin", ".npy"))
    if not paths:
        raise SweepError(f"{root}: no .bin or .npy below it")
    return [Weight(path, root) for path in paths]


def choose_pairs(mode, weights):
    """The (A, B) products of a mode; A is None for a random dense one."""
    if mode == "weights":
        return [(None, b) for b in weights]
    pairs = []
    for a in weights:
        for b in weights:
            if a is b or a.cols != b.rows or a.layer != b.layer:
                continue
            same = a.configuration() == b.configuration()
            if mode == "pairs" and same:
                pairs.append((a, b))
            elif mode == "qk" and same and (a.projection, b.projection) == ("q_proj", "k_proj"):
                pairs.append((a, b))
            elif (mode == "permuted" and a.tensor == b.tensor
                  and (a.permutation, b.permutation) == ("col_perm", "row_perm")
                  and (a.pruner, a.group_size, a.sparsity) == (b.pruner, b.group_size, b.sparsity)):
                pairs.append((a, b))
    return pairs


def sweep_weights(arguments, write):
    pairs = choose_pairs(arguments.mode, find_weights(pathlib.Path(arguments.tree)))
    if not pairs:
        raise SweepError(f"{arguments.tree}: no {arguments.mode} with matching shapes")
    for a, b in pairs:
        m = a.rows if a else arguments.m or b.rows
        row = {"layer": b.layer, "tensor": b.tensor, "pruner": b.pruner,
               "group_size": b.group_size, "permutation": b.permutation, "sparsity": b.sparsity,
               "a": str(a.path) if a else "random dense", "b": str(b.path),
               "m": m, "k": b.rows, "n": b.cols}
        if a:
            row["permutation"] = " x ".join(dict.fromkeys([a.permutation, b.permutation]))
            row["tensor"] = " x ".join(dict.fromkeys([a.tensor, b.tensor]))
            row["a_element_sparsity"], row["a_block_sparsity"] = sparsities(a.values(), True)
        row["element_sparsity"], row["block_sparsity"] = sparsities(b.values(), False)
        case = (["--a", str(a.path)] if a else []) + ["--b", str(b.path)]
        case += ["--dims", str(m), str(b.rows), str(b.cols), "-n", str(b.cols)]
        write(row | measure(arguments, case))


# ---- command line ------------------------------------------------------------------------------

DENSITY_COLUMNS = ["size", "pattern", "density"]
PUBLISHED_COLUMNS = ["published_a10g_esmm_us", "published_a10g_speedup"]
WEIGHT_COLUMNS = ["layer", "tensor", "pruner", "group_size", "permutation", "sparsity",
                  "element_sparsity", "block_sparsity", "a_element_sparsity", "a_block_sparsity",
                  "a", "b", "m", "k", "n"]
MEASURED_COLUMNS = [*TIMES, *RATIOS, *METRICS, "path", "status"]


def parse_sizes(text):
    sizes = [int(part) for part in text.split(",")]
    if min(sizes) < 1:
        raise argparse.ArgumentTypeError("sizes are positive")
    return sizes


def parse_patterns(text):
    patterns = text.split(",")
    for pattern in patterns:
        if not re.fullmatch("[01]{8}", pattern):
            raise argparse.ArgumentTypeError(f"{pattern}: expected 8 digits of 0 and 1")
    return patterns


def main():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--csv", metavar="OUT", help="CSV file (default: standard output)")
    common.add_argument("--spmmbench", default=find_program(), metavar="PATH")
    common.add_argument("--max-seconds", type=float, default=1.0, help="sampling per kernel")
    common.add_argument("--dry-run", action="store_true", help="print the commands only")
    modes = parser.add_subparsers(dest="mode", required=True)
    density = modes.add_parser("density", parents=[common])
    density.add_argument("--sizes", type=parse_sizes, default=[1024, 2048, 4096, 8192])
    density.add_argument("--patterns", type=parse_patterns, default=PATTERNS.split(","))
    for mode in ("weights", "pairs", "qk", "permuted"):
        sub = modes.add_parser(mode, parents=[common])
        sub.add_argument("tree")
        if mode == "weights":
            sub.add_argument("--m", type=int, default=0, help="rows of A (default: K)")
    arguments = parser.parse_args()
    require("numpy")

    is_density = arguments.mode == "density"
    columns = [*(DENSITY_COLUMNS if is_density else WEIGHT_COLUMNS), *MEASURED_COLUMNS,
               *(PUBLISHED_COLUMNS if is_density else [])]
    sink = None
    try:
        if not arguments.dry_run and (arguments.csv or not is_density):
            sink = open(arguments.csv, "w", newline="") if arguments.csv else sys.stdout
        writer = csv.DictWriter(sink, columns) if sink else None
        if writer:
            writer.writeheader()

        def write(row):
            if writer:
                writer.writerow(row)
                sink.flush()

        (sweep_density if is_density else sweep_weights)(arguments, write)
    except (SweepError, OSError) as error:
        sys.exit(str(error))
    finally:
        if sink and sink is not sys.stdout:
            sink.close()


if __name__ == "__main__":
    main()
