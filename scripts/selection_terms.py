"""The terms of a predicted time (src/select/predict.cpp), as fit_selection.py computes them from the features of recorded cases."""

import itertools
import math

TERMS = ["launch", "a_csr", "b", "c", "spill", "gather_rows", "gather_distinct", "gather_spill", "gather_window", "tiles",
         "window_parts", "window_depth", "nonzeros", "loads", "rows", "filled_rows", "longest_row", "variation", "uneven_rows", "mean_row",
         "dense_flops", "dense_a", "dense_spill", "dense_depth", "dense_odd", "dense_a_odd", "block_steps", "block_spill", "positions",
         "bitmap_spill", "slots", "slot_groups", "slot_passes", "packed", "packed_spill", "cluster_us", "cluster_copies",
         "gaps", "gap_spill", "ordered_gather", "ordered_tiles", "scattered", "ordered_rows", "ordered_scattered"]  # fmt: skip
PREPARE_TERMS = ["constant", "nonzeros", "rows", "entries", "search", "search_nonzeros", "search_rows"]
VALUE_BYTES = {"fp32": 4, "tf32": 4, "fp16": 2}


def per_sm(count, device):
    return count / device["sms"] / 100


def spilled(footprint, device):
    """The part of so many bytes that the L2 cache cannot hold."""
    return max(0.0, 1 - 0.6 * device["l2"] / max(footprint, 1.0))


def filled_rows(f):
    """Rows that are in windows: async_wcsr leaves out empty ones where they are an eighth or more. One at least."""
    empty = f.get("empty_rows", 0)
    return max(1.0, f["rows"] if empty < 1 / 8 else f["rows"] * (1 - empty))


def filled_windows(f, kind):
    """The shares of windows that hold rows with nonzeros only, by height: of such windows, which reach over more neighbours."""
    shares = [f[f"{kind}_{height}"] for height in (8, 16, 32)]
    apart = f["rows"] / filled_rows(f)
    if apart == 1:
        return shares

    def at_height(height):
        place = math.log2(height / 8)
        i = 0 if place < 1 else 1
        return max(shares[i] + (place - i) * (shares[i + 1] - shares[i]), shares[2] / 2)

    return [min(share, at_height(min(height * apart, 64))) for share, height in zip(shares, (8, 16, 32))]


def cut_of_window(tiles, windows, feature_tiles, sms, warps):
    """The CTAs that share a window of mean length, and the tiles that each of their warps walks: src/select/window_cut.hpp."""
    most = 4
    while most > 1 and windows * math.ceil(feature_tiles / most) < 2 * sms:
        most //= 2
    groups = math.ceil(feature_tiles / most)
    team = max(1, 4 // math.ceil(feature_tiles / groups))
    wanted, ctas, of_window = 2 * tiles * feature_tiles / warps, windows * groups, tiles / windows
    alike = ctas >= 0.7 * sms and of_window / team <= (16 if ctas < sms else 23)
    part = int(min(max(wanted, 1.3 * of_window / team if alike else 0, 8), 32))
    split = part // 2 if team > 1 and wanted <= 8 else part
    parts = math.ceil(of_window / (team * split)) if of_window > team * part else 1
    return parts, of_window / (team * parts)


HEIGHTS = (8, 16, 32)


def resident_warps(value_bytes, row_bytes):
    """By height: resident_warps of src/select/predict.cpp."""
    return (36, 32, 20) if value_bytes == 2 and row_bytes <= 64 else (28, 20, 16)


def penalties(value_bytes, row_bytes):
    """By height: dense_box_cost of src/select/window_cost.hpp."""
    if value_bytes == 4:
        return 1.0, 1.25, 1.9
    return (1.0, 1.0, 1.3) if row_bytes <= 32 else (1.0, 1.25, 1.7)


def gather_costs(f, fetched_bytes, value_bytes, row_bytes):
    """By height: gather_bytes of src/select/window_cost.hpp times the penalty."""
    return [((f[f"gathered_{h}"] + f[f"stored_{h}"]) / 2 * fetched_bytes
             + max(1.0, fetched_bytes / 256) * f[f"stored_{h}"] * (4 + h * value_bytes)) * penalty
            for h, penalty in zip(HEIGHTS, penalties(value_bytes, row_bytes))]  # fmt: skip


def best_height(f, n, value_bytes, sms):
    """An index into HEIGHTS: best_height of src/select/window_cost.hpp."""
    lines = math.ceil(n * value_bytes / 128)
    costs = [cost * math.sqrt(max(1.0, 0.5 * sms / (max(1.0, f["rows"] / h) * lines)))
             for h, cost in zip(HEIGHTS, gather_costs(f, 128 * lines, value_bytes, n * value_bytes))]  # fmt: skip
    return costs.index(min(costs))


def best_windows(f, case, row_bytes):
    """(gather, tiles, parts, depth) of windows of the height that async_wcsr takes."""
    value_bytes, sms = VALUE_BYTES[case.precision], case.device["sms"]
    at = best_height(f, case.n, value_bytes, sms)
    feature_tiles = math.ceil(row_bytes / 128)
    gathered, stored = filled_windows(f, "gathered")[at], filled_windows(f, "stored")[at]
    count = max(1.0, filled_rows(f) / HEIGHTS[at])
    tiles = max(max(stored, gathered) * f["nnz"] / 16, count)
    return (gathered * f["nnz"] * max(row_bytes, 32) / case.device["gather"],
            per_sm(tiles * feature_tiles, case.device) * penalties(value_bytes, row_bytes)[at],
            *cut_of_window(tiles, count, feature_tiles, sms, sms * resident_warps(value_bytes, row_bytes)[at]))  # fmt: skip


def pitch_of_b(line_bytes):
    """Bytes from a row of B to the next: make_b_view of src/core/dense_view.cpp."""
    if line_bytes <= 32:
        return math.ceil(line_bytes / 16) * 16
    pitch = math.ceil(line_bytes / 32) * 32
    return pitch + 32 if pitch % 128 == 96 else pitch


def dense_depth(f, tiles_of_c, device):
    columns = f["cols"]
    if tiles_of_c <= 0.25 * device["sms"]:
        columns = min(columns, 2304) + max(0, columns - 2304) / 3
    return math.ceil(tiles_of_c / device["sms"]) * columns / 1000


def cluster_split(rows, cols, n, row_major, sms):
    """choose_split of src/select/dense_split.hpp: the expected time, and the bytes that all CTAs copy."""
    best = math.inf, 0
    narrow = row_major and n <= 8
    tiles = ((64, 16), (64, 32)) if narrow or n == 1 else ((64, 16), (64, 32), (64, 64), (128, 64), (128, 128))
    divisions = itertools.product(tiles, (1, 2, 4, 8), (True, False))
    for (tile_rows, columns), cluster, whole_sm in divisions:
        if cluster > min(columns // 4, max(1, math.ceil(cols / 64))) or (tile_rows, columns, whole_sm) == (128, 128, False):
            continue
        sums = 4 * tile_rows * columns
        ctas = math.ceil(rows / tile_rows) * math.ceil(n / columns) * cluster
        k_tiles = math.ceil(math.ceil(cols / 64) / cluster)
        step = 128 * (tile_rows + (8 if narrow else columns))
        if whole_sm:
            us = 0.9 + (1.17 if ctas > sms / 2 else 0)
            rounds = max(1, math.ceil(ctas / (sms * {8: 0.73, 4: 0.85}.get(cluster, 1))))
        else:
            us = 0.9 + 0.44
            rounds = 1 if ctas <= sms / 2 else 1.43 if cluster > 1 else 1.23
            rounds = max(rounds, 1.12 * math.ceil(ctas / sms)) if ctas > sms else rounds
        us += rounds * (k_tiles * (0.03 + max(16 * 1024, step) / 154e3) + sums / 54e3)
        us += ctas * k_tiles * step / 25e6
        us += 0.22 + rounds * sums / 31e3 if cluster > 1 else 0
        best = min(best, (us, ctas * k_tiles * step))
    return best


def gap_bytes(f):
    """Of values and gaps in gap_slices, where nonzeros lie at random."""
    empty = 1 - f["nnz"] / max(1.0, f["rows"] * f["cols"])
    return min(f["nnz"] * (2 + bits / 8) / max(1 - empty ** (2**bits - 1), 1e-9) for bits in (4, 8))


def left_by_order(case):
    """What a row order leaves of the gathers of windows and slices: left_by_order of src/select/predict.cpp."""
    f = case.features
    if f["gathered_8"] == 0:
        return 1.0
    overlap = f.get("row_overlap", 1) / max(1.0, f["cv_row"])
    return min(f["gathered_8"], max(0.35, 1 - 1.25 * overlap)) / f["gathered_8"]


def terms_of(case):
    """The terms of src/select/predict.cpp, in the order of TERMS."""
    f, device, n = case.features, case.device, case.n
    value_bytes = VALUE_BYTES[case.precision]
    rows, cols, nnz, memory, sms = f["rows"], f["cols"], f["nnz"], device["memory"], device["sms"]
    row_bytes = pitch_of_b(n * value_bytes)
    b_bytes, c_bytes = cols * row_bytes, rows * n * 4
    gathered = nnz * math.ceil(row_bytes / 32) * 32
    pieces = math.ceil(row_bytes / 256)
    gather_window, tiles, parts, window_depth = best_windows(f, case, row_bytes)
    tiles_of_c = math.ceil(rows / 128) * math.ceil(n / 128)
    entries = rows * cols
    dense_a = entries * value_bytes / memory
    depth = dense_depth(f, tiles_of_c, device)
    a_csr = nnz * (4 + value_bytes) + rows * 8
    odd = cols * value_bytes % 16 != 0 or n * value_bytes % 16 != 0
    block_bytes = math.ceil(rows / 128) * 128 * f["band_blocks"] * 64 * value_bytes
    density = nnz / max(1.0, entries)
    bitmap_bytes = entries / 16 + 2 * entries * (1 - (1 - density) * (1 - density))  # by pairs of columns
    if n <= 64 and bitmap_bytes > device["l2"] and density >= (0.33 if n <= 32 else 0.38):  # by values
        bitmap_bytes = entries / 8 + 2 * (nnz + entries / 8 * (1 - (1 - 2 * density) ** 8) / 2)
    row_slots = max(1, rows * math.ceil(cols / 4096) * 8)
    slots = row_slots * (nnz / row_slots + 1.42 * math.sqrt(nnz / row_slots) + 1.5)
    packed = entries * (value_bytes / 2 + 1 / 8)
    groups = 1 if n <= 8 else 2
    passes = math.ceil(n / (8 * groups))
    cluster_us, cluster_copies = cluster_split(rows, cols, n, case.layout == "row" and n > 1, sms)  # at N = 1 the layouts are the same
    left = left_by_order(case)
    left_in_windows = left if searches_order(case) else 1.0
    terms = {
        "launch": 1.0,
        "a_csr": a_csr / memory,
        "b": b_bytes / memory,
        "c": c_bytes / memory,
        "spill": (a_csr + b_bytes + c_bytes) * spilled(a_csr + b_bytes + c_bytes, device) / memory,
        "gather_rows": gathered / device["gather"],
        "gather_distinct": gathered * f["gathered_8"] / device["gather"],
        "gather_spill": gathered * spilled(b_bytes, device) / memory,
        "gather_window": gather_window,
        "tiles": tiles,
        "window_parts": (parts - 1) / 10,
        "window_depth": window_depth / 10,
        "nonzeros": per_sm(nnz * pieces, device),
        "loads": per_sm(nnz * math.ceil(row_bytes / 16), device),
        "rows": per_sm(rows * pieces, device),
        "filled_rows": per_sm(filled_rows(f) * pieces, device),
        "longest_row": min(f["max_row"], 4000.0) / 1000,
        "variation": min(f["cv_row"], 3.0),
        "uneven_rows": gathered / device["gather"] * min(f["cv_row"], 2.0),
        "mean_row": min(f["mean_row"], 256.0) / 100,
        "dense_flops": 2 * entries * n / device["flops"],
        "dense_a": dense_a,
        "dense_spill": dense_a * spilled(entries * value_bytes + b_bytes + c_bytes, device),
        "dense_depth": depth,
        "dense_odd": depth * odd,
        "dense_a_odd": dense_a * odd,
        "block_steps": math.ceil(math.ceil(rows / 128) * math.ceil(n / 256) / sms) * f["band_blocks"],
        "block_spill": block_bytes * spilled(block_bytes + b_bytes + c_bytes, device) / memory,
        "positions": entries * math.ceil(n / 256) / sms / 1e6,
        "bitmap_spill": bitmap_bytes * spilled(bitmap_bytes + b_bytes + c_bytes, device) / memory,
        "slots": per_sm(slots * passes, device) / 1000,
        "slot_groups": per_sm(slots * passes * groups, device) / 1000,
        "slot_passes": passes,
        "packed": packed / memory,
        "packed_spill": packed * spilled(packed + b_bytes + c_bytes, device) / memory,
        "cluster_us": cluster_us,
        "cluster_copies": cluster_copies / device["gather"],
        "gaps": gap_bytes(f) / memory,
        "gap_spill": gap_bytes(f) * spilled(gap_bytes(f) + b_bytes + c_bytes, device) / memory,
        "ordered_gather": left_in_windows * gather_window,
        "ordered_tiles": left_in_windows * tiles,
        "scattered": f["gathered_32"],
        "ordered_rows": left * gathered / device["gather"],
        "ordered_scattered": left * f["gathered_32"],
    }
    return [terms[name] for name in TERMS]


def searches_order(case):
    """Whether a kernel that looks for a row order would do so: worth_order of src/select/window_cost.hpp."""
    f, n, value_bytes = case.features, case.n, VALUE_BYTES[case.precision]
    cost = min(gather_costs(f, n * value_bytes, value_bytes, n * value_bytes))
    memory_bytes = f["nnz"] * (4 + value_bytes) + f["cols"] * n * value_bytes + f["rows"] * n * 4
    return f["nnz"] * cost / 8.4e6 > 0.45 * memory_bytes / 3.4e6


def prepare_terms_of(case):
    f, search = case.features, searches_order(case)
    nonzeros, rows = f["nnz"] / 1e6, f["rows"] / 1e6
    return [1.0, nonzeros, rows, rows * f["cols"], search * 1.0, search * nonzeros, search * rows]
