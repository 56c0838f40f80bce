#pragma once
// How the kernel dense_cluster divides a product, and how long that is expected to take. The kernel
// and auto's predictions use the same.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "spmmbench/device.hpp"

namespace spmmbench::dense_cluster {

inline constexpr int kTileRows = 64;   // of C
inline constexpr int kTileK = 64;      // 16-bit values in a line of 128 bytes, in its swizzle
inline constexpr int kLineBytes = 128;
inline constexpr int kMostCluster = 8;  // that every device of compute capability 9.0 takes
inline constexpr int kTileWidths[] = {16, 32, 64, 128};

// Column-major B: a line per column, 64 of k. Row-major B: for every 64 columns 64 lines, one per
// k; a narrow tile has columns that are not used.
constexpr int tile_bytes_b(Layout layout, int columns) {
  return (layout == Layout::col_major ? columns : std::max(columns, kTileK)) * kLineBytes;
}
constexpr int stage_bytes(Layout layout, int columns) {
  return kTileRows * kLineBytes + tile_bytes_b(layout, columns);
}
// A CTA adds the sums of two columns at least.
constexpr int most_cluster(int columns) { return std::min(kMostCluster, columns / 4); }

constexpr std::int64_t tiles_of(std::int64_t extent, int tile) {
  return (extent + tile - 1) / tile;
}

struct Split {
  int tile_columns = 0;
  int cluster = 0;  // CTAs that share K
  double us = std::numeric_limits<double>::infinity();
};

// The time of a division, fitted to those of ten layers of 256 to 3584 rows on an H200
// (docs/log/dense-cluster.md).
inline double expected_us(std::int64_t m, std::int64_t k, std::int64_t n, Layout layout,
                          const Split& split, int sm_count) {
  constexpr double kLaunchUs = 1.3;
  constexpr double kCopyBytesPerUs = 132e3;       // of one CTA, from the L2 cache
  constexpr double kAllCopiesBytesPerUs = 19.6e6;  // of all of them
  constexpr double kStoreBytesPerUs = 37e3;       // of one CTA's sums
  // Copies of row-major B whose lines are shorter than a sector of the L2 cache: all CTAs read the
  // same few sectors.
  constexpr double kSectorBytes = 32, kShortCopiesPerUs = 300;
  constexpr double kExchangeUs = 0.32, kExchangeBytesPerUs = 29e3;  // of one CTA's sums
  const double ctas = static_cast<double>(tiles_of(m, kTileRows) *
                                          tiles_of(n, split.tile_columns) * split.cluster);
  const double per_sm = std::max(1.0, ctas / sm_count);
  const auto k_tiles = static_cast<double>(tiles_of(tiles_of(k, kTileK), split.cluster));
  const double copied = k_tiles * stage_bytes(layout, split.tile_columns);
  const double sums = 4.0 * kTileRows * split.tile_columns;
  const double exchange =
      split.cluster > 1 ? kExchangeUs + per_sm * sums / kExchangeBytesPerUs : 0;
  double us = kLaunchUs + per_sm * (copied / kCopyBytesPerUs + sums / kStoreBytesPerUs) +
              exchange + ctas * copied / kAllCopiesBytesPerUs;
  if (layout == Layout::row_major && 2.0 * static_cast<double>(n) < kSectorBytes)
    us += ctas * k_tiles / kShortCopiesPerUs;
  return us;
}

// The fastest division. What is wanted is taken as far as the matrix allows.
inline Split choose_split(std::int64_t m, std::int64_t k, std::int64_t n, Layout layout,
                          int sm_count, std::optional<int> tile_columns = {},
                          std::optional<int> cluster = {}) {
  Split best;
  for (const int columns : kTileWidths) {
    if (tile_columns && columns != *tile_columns) continue;
    const std::int64_t limit =
        std::min<std::int64_t>(most_cluster(columns), tiles_of(k, kTileK));
    int most = 1;
    while (2 * most <= limit) most *= 2;
    for (int ctas = 1; ctas <= most; ctas *= 2) {
      if (cluster && ctas != std::min(*cluster, most)) continue;
      Split split{columns, ctas, 0};
      split.us = expected_us(m, k, n, layout, split, sm_count);
      if (split.us < best.us) best = split;
    }
  }
  return best;
}

}  // namespace spmmbench::dense_cluster
