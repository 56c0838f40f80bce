#pragma once
// How often a cache that keeps some rows of B has to read one that it has dropped.
//
// A stretch of rows is read in chunks, and its distinct columns are counted after each. It ends
// once it has as many as the cache keeps. Columns that are new in its second half come from memory:
// its first half has filled the cache.

#include <array>
#include <cstdint>
#include <vector>

#include "spmmbench/host_device.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench {

inline constexpr int kReuseStretches = 4;  // of a matrix, which begin at equal distances
inline constexpr int kMostChunkRows = 512;

struct ReuseRule {
  std::int64_t kept;        // rows of B
  std::int64_t entries;     // of a stretch, at most one chunk more
  std::int64_t chunk_rows;  // kMostChunkRows at most
};
ReuseRule reuse_rule(std::int64_t rows, std::int64_t nnz, std::int64_t kept);

SPMMBENCH_HOST_DEVICE constexpr std::int64_t start_of_stretch(int stretch, std::int64_t rows) {
  return rows * stretch / kReuseStretches;
}

// What a stretch has shown after each chunk.
struct SeenColumns {
  static constexpr int kMostPoints = 256;
  struct Point {
    std::int64_t entries, distinct;
  };
  Point points[kMostPoints + 2];
  int count;

  SPMMBENCH_HOST_DEVICE constexpr void begin() {
    points[0] = {0, 0};
    count = 1;
  }
  // Points are apart, so that no stretch has too many.
  SPMMBENCH_HOST_DEVICE constexpr void add(const ReuseRule& rule, Point now) {
    const std::int64_t least = rule.entries / kMostPoints + 1;
    if (now.entries >= points[count - 1].entries + least) points[count++] = now;
  }
  // Of the entries of the second half, where `now` is the end.
  SPMMBENCH_HOST_DEVICE constexpr double new_share(Point now) const {
    int half = 0;
    while (half + 1 < count && points[half].entries < now.entries / 2) ++half;
    const std::int64_t entries = now.entries - points[half].entries;
    return entries <= 0 ? 0
                        : static_cast<double>(now.distinct - points[half].distinct) /
                              static_cast<double>(entries);
  }
};

// For each row order (empty: natural) the share of the nonzeros whose column is not among the
// last `kept` distinct ones, first uses included: the mean over the stretches.
std::vector<double> new_column_shares(const CsrMatrix& matrix,
                                      const std::vector<const Permutation*>& row_orders,
                                      std::int64_t kept);

}  // namespace spmmbench
