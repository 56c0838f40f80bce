#pragma once
// The cost of windows of rows of each height. The kernels of the window engine choose the height by
// it, and auto predicts their choice. Constants without another source were measured on an H200,
// those of heights on an H100 (docs/decisions/window-cuts.md).

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "format/wcsr_estimate.hpp"
#include "reorder/match.hpp"
#include "spmmbench/host_device.hpp"
#include "spmmbench/precision.hpp"
#include "window/wcsr_heights.hpp"

namespace spmmbench::window {

// Rates of an H200, in bytes per microsecond.
constexpr double kL2BytesPerUs = 8.4e6, kMemoryBytesPerUs = 3.4e6;

// Rows of B of at most this many bytes have feature tiles of their own in async_wcsr, with 16-bit
// values.
constexpr int kShortestRow = 32, kNarrowRow = 64;

// What rows of B of a certain width cost where windows gather them.
struct GatherCost {
  // Taller windows hold more registers, so fewer of them hide the latency of the gathers.
  std::array<double, 3> penalty;
  double line_bytes = 128;   // gathered at a time: part of them takes as long as all
  double busy_pieces = 0.5;  // pieces of work that keep a multiprocessor busy
};

// The cost of a window of each height in a kernel's format.
struct FormatCost {
  std::array<double, 3> bytes_per_column;  // of A, per packed column and without its index
  double bytes_per_nonzero;                // of A
  GatherCost wide, narrow, vector;         // narrow: rows of B of kShortestRow bytes or less

  SPMMBENCH_HOST_DEVICE const GatherCost& gathers(std::int64_t n, int value_bytes) const {
    return n == 1 ? vector : n * value_bytes <= kShortestRow ? narrow : wide;
  }
};

// For async_wcsr, whose tiles are dense boxes. Windows of 32 rows were measured in 16 bits and in
// tf32 (docs/decisions/window-cuts.md).
inline FormatCost dense_box_cost(Precision precision) {
  const auto bytes = static_cast<double>(bytes_of(storage_type(precision)));
  const bool half = bytes <= 2;
  if (precision == Precision::fp32) {
    // CUDA cores multiply the zeros of taller windows for longer than these save gathers.
    constexpr GatherCost kGathers = {.penalty = {1.0, 1.75, 3.2}};
    return {.bytes_per_column = {8 * bytes, 16 * bytes, 32 * bytes},
            .bytes_per_nonzero = 0,
            .wide = kGathers,
            .narrow = kGathers,
            .vector = kGathers};
  }
  return {.bytes_per_column = {8 * bytes, 16 * bytes, 32 * bytes},
          .bytes_per_nonzero = 0,
          .wide = {.penalty = {1.0, 1.25, half ? 1.7 : 1.9}},
          .narrow = {.penalty = {1.0, half ? 1.0 : 1.25, half ? 1.3 : 1.9}},
          .vector = {.penalty = {1.0, 1.15, 1.8}, .line_bytes = 32, .busy_pieces = 4}};
}

// Bytes through the L2 cache per nonzero: the gathered rows of B, `row_bytes` of each, and A once
// per feature tile. A padding column fetches nothing, but takes about half the time of a column
// that does.
SPMMBENCH_HOST_DEVICE inline double gather_bytes(const WcsrEstimate& estimate,
                                                 std::size_t height_index, double row_bytes,
                                                 const FormatCost& format) {
  const double feature_tiles = std::max(1.0, row_bytes / 256);
  const double gathered = estimate.gathered_share[height_index];
  const double stored = estimate.stored_share[height_index];
  return (gathered + stored) / 2 * row_bytes +
         feature_tiles *
             (stored * (4 + format.bytes_per_column[height_index]) + format.bytes_per_nonzero);
}

struct Height {
  int index = 0;  // into kWcsrHeights
  double cost = std::numeric_limits<double>::infinity();
};

// The height that costs least. A piece of work is a window times one line of B. Tall windows make
// few pieces. Where there are too few to keep all multiprocessors busy, the cost is multiplied by
// the square root of the pieces that would do so over those that there are.
// `only`: the index of the one height that may be chosen.
SPMMBENCH_HOST_DEVICE inline Height best_height(const WcsrEstimate& estimate, double rows,
                                                std::int64_t n, int value_bytes,
                                                const FormatCost& format, double sms,
                                                std::optional<int> only = {}) {
  const GatherCost& gathers = format.gathers(n, value_bytes);
  const double lines = std::ceil(static_cast<double>(n * value_bytes) / gathers.line_bytes);
  Height best;
  for (std::size_t h = 0; h < kWcsrHeightCount; ++h) {
    if (only && static_cast<int>(h) != *only) continue;
    const double pieces = std::max(1.0, rows / wcsr_height(h)) * lines;
    const double cost = gather_bytes(estimate, h, lines * gathers.line_bytes, format) *
                        gathers.penalty[h] *
                        std::sqrt(std::max(1.0, gathers.busy_pieces * sms / pieces));
    if (cost < best.cost) best = {static_cast<int>(h), cost};
  }
  return best;
}

// Whether to search for an order that brings rows with the same columns together. It is worth it
// where the gathers in natural order take longer than a certain share of the time of the compulsory
// bytes, and longer than kLeastUs: a product takes 3 us and more whatever it gathers. Of 79
// matrices at N = 128, 28 gather less; in another order their products take 1.00 x, and the search
// as long as 120 of them. Narrow rows of B were not measured (docs/decisions/row-orders.md). Where
// most rows are empty, it takes long and gains little.
SPMMBENCH_HOST_DEVICE inline bool worth_order(const WcsrEstimate& natural, double rows, double cols,
                                              double nnz, std::int64_t n, int value_bytes,
                                              const FormatCost& format) {
  constexpr double kWorth = 0.45, kLeastUs = 2.2;
  if (!match::is_filled(rows, cols, nnz)) return false;
  const auto columns = static_cast<double>(n);
  const double row_bytes = columns * value_bytes;
  double gathers = std::numeric_limits<double>::infinity();
  for (std::size_t h = 0; h < kWcsrHeightCount; ++h)
    gathers = std::min(gathers, gather_bytes(natural, h, row_bytes, format) *
                                    format.gathers(n, value_bytes).penalty[h]);
  const double memory_bytes = nnz * (4 + value_bytes) + cols * row_bytes + rows * columns * 4;
  const double gathers_us = nnz * gathers / kL2BytesPerUs;
  return gathers_us > kWorth * memory_bytes / kMemoryBytesPerUs &&
         (row_bytes <= kNarrowRow || gathers_us > kLeastUs);
}

// Whether sorting the rows by length could bring rows that share hub columns together: meshes and
// FEM matrices have a variation of up to 0.6, graphs with hubs one of 0.9 and more.
constexpr double kVariedLengths = 0.8;
// Rows by length are compared where they should cost at most this many times what natural order
// does.
constexpr double kSlackByLength = 1.03;

}  // namespace spmmbench::window
