#pragma once
// The cost of windows of rows of each height. The kernels of the window engine choose the height by
// it, and auto predicts their choice. Constants without another source were measured on an H200
// (docs/log/irregular-windows.md).

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "format/wcsr_estimate.hpp"

namespace spmmbench::window {

// Rates of an H200, in bytes per microsecond.
constexpr double kL2BytesPerUs = 8.4e6, kMemoryBytesPerUs = 3.4e6;

// Taller windows hold more registers, so fewer of them hide the latency of the gathers.
constexpr std::array<double, 3> kHeightPenalty = {1.0, 1.25, 1.9};

// The cost of a window of each height in a kernel's format.
struct FormatCost {
  std::array<double, 3> bytes_per_column;  // of A, per packed column and without its index
  double bytes_per_nonzero;                // of A
  std::array<double, 3> height_penalty;
};

// For async_wcsr, whose tiles are dense boxes.
inline FormatCost dense_box_cost(double value_bytes) {
  return {.bytes_per_column = {8 * value_bytes, 16 * value_bytes, 32 * value_bytes},
          .bytes_per_nonzero = 0,
          .height_penalty = kHeightPenalty};
}

// Bytes through the L2 cache per nonzero: the gathered rows of B, and A once per feature tile. A
// padding column fetches nothing, but takes about half the time of a column that does.
inline double gather_cost(const WcsrEstimate& estimate, std::size_t height_index, std::int64_t n,
                          int value_bytes, const FormatCost& format) {
  const auto row_bytes = static_cast<double>(n) * value_bytes;
  const double feature_tiles = std::max(1.0, row_bytes / 256);
  const double gathered = estimate.gathered_share[height_index];
  const double stored = estimate.stored_share[height_index];
  return ((gathered + stored) / 2 * row_bytes +
          feature_tiles *
              (stored * (4 + format.bytes_per_column[height_index]) + format.bytes_per_nonzero)) *
         format.height_penalty[height_index];
}

struct Height {
  int index = 0;                                          // into kWcsrHeights
  double cost = std::numeric_limits<double>::infinity();  // gather_cost
};

inline Height best_height(const WcsrEstimate& estimate, std::int64_t n, int value_bytes,
                          const FormatCost& format) {
  Height best;
  for (std::size_t h = 0; h < kWcsrHeights.size(); ++h) {
    const double cost = gather_cost(estimate, h, n, value_bytes, format);
    if (cost < best.cost) best = {static_cast<int>(h), cost};
  }
  return best;
}

// Whether to search for an order that brings rows with the same columns together. It is worth it
// where the gathers in natural order take longer than a certain share of the time of the compulsory
// bytes.
inline bool worth_order(double rows, double cols, double nnz, double natural_cost, std::int64_t n,
                        int value_bytes) {
  constexpr double kWorth = 0.45;
  const auto columns = static_cast<double>(n);
  const double memory_bytes =
      nnz * (4 + value_bytes) + cols * columns * value_bytes + rows * columns * 4;
  return nnz * natural_cost / kL2BytesPerUs > kWorth * memory_bytes / kMemoryBytesPerUs;
}

}  // namespace spmmbench::window
