#pragma once
// How the kernel dense_cluster divides a product, and how long that is expected to take. The kernel
// and auto's predictions use the same.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "spmmbench/device.hpp"

namespace spmmbench::dense_cluster {

inline constexpr int kTileRows = 64;  // of C
inline constexpr int kTileK = 64;     // 16-bit values in a line of 128 bytes, in its swizzle
inline constexpr int kLineBytes = 128;
inline constexpr int kMostCluster = 8;  // that every device of compute capability 9.0 takes
inline constexpr int kTileWidths[] = {16, 32, 64};
// Row-major B of up to 8 columns has rows of 16 bytes. wgmma reads them as they lie, without a
// swizzle, and a tile of 16 columns has room for them.
inline constexpr int kNarrowColumns = 8, kNarrowTile = 16;

// What a stage holds of B.
enum class TileB {
  col_major,  // a line per column, 64 of k
  row_major,  // a line of 64 columns for each of 64 k; a tile of fewer does not use all of them
  narrow,     // row-major: 8 columns for each of 64 k
};
constexpr TileB tile_b_of(Layout layout, std::int64_t n) {
  if (layout == Layout::col_major) return TileB::col_major;
  return n <= kNarrowColumns ? TileB::narrow : TileB::row_major;
}
constexpr int tile_bytes_b(TileB b, int columns) {
  if (b == TileB::narrow) return kTileK * kNarrowColumns * 2;
  return (b == TileB::col_major ? columns : kTileK) * kLineBytes;
}
constexpr int stage_bytes(TileB b, int columns) {
  return kTileRows * kLineBytes + tile_bytes_b(b, columns);
}
// A thread has a quarter as many pairs of sums as the tile has columns, and every CTA adds at least
// one of them.
constexpr int most_cluster(int columns) { return std::min(kMostCluster, columns / 4); }

constexpr std::int64_t tiles_of(std::int64_t extent, int tile) {
  return (extent + tile - 1) / tile;
}

struct Split {
  int tile_columns = 0;
  int cluster = 0;  // CTAs that share K
  // One CTA has a whole multiprocessor; else two share it, and those of the next launch begin to
  // copy A before this one ends.
  bool whole_sm = false;
  double us = std::numeric_limits<double>::infinity();
};

inline double ctas_of(std::int64_t m, std::int64_t n, const Split& split) {
  return static_cast<double>(tiles_of(m, kTileRows) * tiles_of(n, split.tile_columns) *
                             split.cluster);
}

// Steps of 64 of k that a CTA walks, and the bytes that all CTAs copy.
inline double steps_of(std::int64_t k, const Split& split) {
  return static_cast<double>(tiles_of(tiles_of(k, kTileK), split.cluster));
}
inline double copied_bytes(std::int64_t m, std::int64_t k, std::int64_t n, Layout layout,
                           const Split& split) {
  return ctas_of(m, n, split) * steps_of(k, split) *
         stage_bytes(tile_b_of(layout, n), split.tile_columns);
}

// Whether so many CTAs have a multiprocessor each and are done soonest so. Clusters of four and
// eight do not find room on all multiprocessors, and without a cluster sharing pays before all are
// taken. The shares lie between the numbers of CTAs that were measured on an H200, 64 and 128 of
// 132 (docs/log/dense-cluster.md).
inline bool takes_whole_sm(double ctas, int cluster, int sm_count) {
  constexpr double kShareOfPairs = 1, kShareOfEights = 0.73, kShareOfOthers = 0.85;
  const double share = cluster == 2   ? kShareOfPairs
                       : cluster == 8 ? kShareOfEights
                                      : kShareOfOthers;
  return ctas <= share * sm_count;
}

// The time of a division, fitted to those of four layers of 256 to 2048 rows at N = 16 to 256 on an
// H200 (docs/log/dense-cluster.md).
inline double expected_us(std::int64_t m, std::int64_t k, std::int64_t n, Layout layout,
                          const Split& split, int sm_count) {
  constexpr double kLaunchUs = 1.12;
  constexpr double kSharedSmUs = 0.45;             // where CTAs share multiprocessors
  constexpr double kCopyBytesPerUs = 173e3;        // of one CTA, from the L2 cache
  constexpr int kNarrowStepBytes = 16 * 1024;      // a step with narrow B takes as long as these
  constexpr double kAllCopiesBytesPerUs = 16.9e6;  // of all of them
  constexpr double kStoreBytesPerUs = 31.6e3;      // of one CTA's sums
  constexpr double kExchangeUs = 0.23, kExchangeBytesPerUs = 39.4e3;  // of one CTA's sums
  const double ctas = ctas_of(m, n, split);
  const double per_sm = std::max(1.0, ctas / sm_count);
  const TileB b = tile_b_of(layout, n);
  const int step_bytes = b == TileB::narrow ? kNarrowStepBytes : stage_bytes(b, split.tile_columns);
  const double sums = 4.0 * kTileRows * split.tile_columns;
  double us =
      kLaunchUs +
      per_sm * (steps_of(k, split) * step_bytes / kCopyBytesPerUs + sums / kStoreBytesPerUs) +
      copied_bytes(m, k, n, layout, split) / kAllCopiesBytesPerUs;
  if (!split.whole_sm) us += kSharedSmUs;
  if (split.cluster > 1) us += kExchangeUs + per_sm * sums / kExchangeBytesPerUs;
  return us;
}

// The fastest division. What is wanted is taken as far as the matrix allows.
inline Split choose_split(std::int64_t m, std::int64_t k, std::int64_t n, Layout layout,
                          int sm_count, std::optional<int> tile_columns = {},
                          std::optional<int> cluster = {}) {
  Split best;
  if (tile_b_of(layout, n) == TileB::narrow) tile_columns = kNarrowTile;
  for (const int columns : kTileWidths) {
    if (tile_columns && columns != *tile_columns) continue;
    const std::int64_t limit = std::min<std::int64_t>(most_cluster(columns), tiles_of(k, kTileK));
    int most = 1;
    while (2 * most <= limit) most *= 2;
    for (int ctas = 1; ctas <= most; ctas *= 2) {
      if (cluster && ctas != std::min(*cluster, most)) continue;
      Split split{columns, ctas, false, 0};
      split.whole_sm = takes_whole_sm(ctas_of(m, n, split), ctas, sm_count);
      split.us = expected_us(m, k, n, layout, split, sm_count);
      if (split.us < best.us) best = split;
    }
  }
  return best;
}

}  // namespace spmmbench::dense_cluster
