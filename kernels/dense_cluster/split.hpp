#pragma once
// How the kernel dense_cluster divides a product, and how long that is expected to take. The kernel
// and auto's predictions use the same.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "spmmbench/device.hpp"

namespace spmmbench::dense_cluster {

inline constexpr int kLineBytes = 128;  // of a row of A in a stage, in the swizzle of 128 bytes
// Columns of A in a stage: 64 of 16 bits, 128 of 8.
constexpr int tile_k(int value_bytes) { return kLineBytes / value_bytes; }
inline constexpr int kMostCluster = 8;  // that every device of compute capability 9.0 takes
// A tile of C. One of 128 rows copies B half as often as one of 64.
struct Tile {
  int rows = 0, columns = 0;
  friend constexpr bool operator==(const Tile&, const Tile&) = default;
};
inline constexpr Tile kTiles[] = {{64, 16}, {64, 32}, {64, 64}, {128, 64}, {128, 128}};
inline constexpr Tile kLargestTile = {128, 128};
// Row-major B of up to 8 columns has rows of 16 bytes. wgmma reads them as they lie, without a
// swizzle; the tile's other columns are rows of B that follow, and are not stored. A tile of 32
// columns has work for a cluster of eight.
inline constexpr int kNarrowColumns = 8;
inline constexpr int kPackedRowBytes = 16;  // of a row of B that is copied as part of a line
constexpr bool takes_narrow_b(const Tile& tile) { return tile.rows == 64 && tile.columns <= 32; }
// Row-major B in 8 bits is wgmma's first operand, whose 64 rows are columns of B.
inline constexpr int kTransposedColumns = 64;
constexpr bool takes_transposed_b(const Tile& tile) { return tile.columns >= kTransposedColumns; }
// With few columns most of these rows would be empty. Then B is turned in shared memory, up to 16
// columns in rows of 16 bytes.
inline constexpr int kTurnedColumns = 32, kTurnedNarrowColumns = 16;
constexpr bool takes_turned_b(const Tile& tile) {
  return tile.rows == 64 && tile.columns <= kTurnedColumns;
}
// Tiles of as many columns are stored by copies of 16 bytes, which may end behind a single column
// of C.
inline constexpr int kCopiedColumns = 64;

// The product that is divided.
struct Extents {
  std::int64_t m = 0, k = 0, n = 0;
  Layout layout = Layout::row_major;
  int value_bytes = 2;  // of A and of B
};

// What a stage holds of B.
enum class TileB {
  col_major,      // a line per column, with the k of the stage
  row_major,      // a line for each k, or two: the columns of a tile, at most 64 a line
  narrow,         // row-major: 8 columns for each k
  transposed,     // row-major in 8 bits: a line for each k
  turned,         // the same with few columns, which is made a line per column there
  turned_narrow,  // turned: 16 columns for each k
};
constexpr TileB tile_b_of(const Extents& of) {
  if (of.layout == Layout::col_major) return TileB::col_major;
  if (of.value_bytes == 1)
    return of.n <= kTurnedNarrowColumns ? TileB::turned_narrow
           : of.n <= kTurnedColumns     ? TileB::turned
                                        : TileB::transposed;
  return of.n <= kNarrowColumns ? TileB::narrow : TileB::row_major;
}
// Of a tile that has so many.
constexpr int columns_of_b(TileB b, int columns) {
  return b == TileB::narrow          ? kNarrowColumns
         : b == TileB::turned_narrow ? kTurnedNarrowColumns
                                     : columns;
}
constexpr int stage_bytes(TileB b, const Tile& tile) {
  return (tile.rows + columns_of_b(b, tile.columns)) * kLineBytes;
}
// A thread has a quarter as many pairs of sums as the tile has columns, and every CTA adds at least
// one of them.
constexpr int most_cluster(int columns) { return std::min(kMostCluster, columns / 4); }

constexpr std::int64_t tiles_of(std::int64_t extent, int tile) {
  return (extent + tile - 1) / tile;
}

constexpr bool may_take(const Tile& tile, const Extents& of) {
  const TileB b = tile_b_of(of);
  if (b == TileB::narrow) return takes_narrow_b(tile);
  if (b == TileB::transposed) return takes_transposed_b(tile);
  if (b == TileB::turned || b == TileB::turned_narrow) return takes_turned_b(tile);
  return of.n > 1 || tile.columns < kCopiedColumns;
}

struct Split {
  Tile tile;
  int cluster = 0;  // CTAs that share K
  // One CTA has a whole multiprocessor; else two share it, and those of the next launch begin to
  // copy A before this one ends. Half has room for one stage of the largest tile, which needs two.
  bool whole_sm = true;
  double us = std::numeric_limits<double>::infinity();
};

inline double ctas_of(const Extents& of, const Split& split) {
  return static_cast<double>(tiles_of(of.m, split.tile.rows) * tiles_of(of.n, split.tile.columns) *
                             split.cluster);
}

// Stages that a CTA walks, and the bytes that all CTAs copy.
inline double steps_of(const Extents& of, const Split& split) {
  return static_cast<double>(tiles_of(tiles_of(of.k, tile_k(of.value_bytes)), split.cluster));
}
inline double copied_bytes(const Extents& of, const Split& split) {
  return ctas_of(of, split) * steps_of(of, split) * stage_bytes(tile_b_of(of), split.tile);
}

// CTAs that run at a time where each has a multiprocessor: clusters of four and eight do not find
// room on all of them. The shares lie between the numbers of CTAs that were measured on an H200:
// 112 and 128 of 132, 64 and 128 (docs/kernels/dense_cluster.md).
inline double resident_ctas(int cluster, int sm_count) {
  constexpr double kShareOfFours = 0.85, kShareOfEights = 0.73;
  return sm_count * (cluster == 8 ? kShareOfEights : cluster == 4 ? kShareOfFours : 1);
}

// The time of a division, fitted to those of twelve matrices of 256 to 4267 rows at N = 16 to 512
// on an H200 (docs/kernels/dense_cluster.md).
inline double expected_us(const Extents& of, const Split& split, int sm_count) {
  constexpr double kLaunchUs = 0.9;
  // Whole multiprocessors: more CTAs than half of these, and the next launch finds no free ones.
  constexpr double kNoneFreeUs = 1.17;
  // Halves: what sharing costs, and how much longer a CTA takes, since some share with a CTA of the
  // same launch.
  constexpr double kSharedUs = 0.44, kUneven = 1.23, kUnevenClusters = 1.43, kCrowded = 1.12;
  // Times of one CTA with operands in L2. In 8 bits a step ends with sums that are added in fp32
  // (fitted to eight matrices, N = 128 and 512).
  constexpr double kStepUs = 0.03, kPromotedStepUs = 0.12, kCopyBytesPerUs = 154e3;
  constexpr int kLeastStepBytes = 16 * 1024;  // a step of fewer takes as long
  constexpr double kAllCopiesBytesPerUs = 25e6;
  constexpr double kStoreBytesPerUs = 54e3;                         // of one CTA's sums
  constexpr double kExchangeUs = 0.22, kExchangeBytesPerUs = 31e3;  // of one CTA's sums
  const double ctas = ctas_of(of, split);
  const bool more_than_half = ctas > sm_count / 2.0;
  double us = kLaunchUs, rounds = 1;
  if (split.whole_sm) {
    rounds = std::max(1.0, std::ceil(ctas / resident_ctas(split.cluster, sm_count)));
    if (more_than_half) us += kNoneFreeUs;
  } else {
    us += kSharedUs;
    if (more_than_half) rounds = split.cluster > 1 ? kUnevenClusters : kUneven;
    if (ctas > sm_count) rounds = std::max(rounds, kCrowded * std::ceil(ctas / sm_count));
  }
  const int step_bytes = std::max(kLeastStepBytes, stage_bytes(tile_b_of(of), split.tile));
  const double step_us = of.value_bytes == 1 ? kPromotedStepUs : kStepUs;
  const double sums = 4.0 * split.tile.rows * split.tile.columns;
  us += rounds * (steps_of(of, split) * (step_us + step_bytes / kCopyBytesPerUs) +
                  sums / kStoreBytesPerUs) +
        copied_bytes(of, split) / kAllCopiesBytesPerUs;
  if (split.cluster > 1) us += kExchangeUs + rounds * sums / kExchangeBytesPerUs;
  return us;
}

// What of a division is wanted; the rest is chosen.
struct Wanted {
  std::optional<int> rows = {}, columns = {}, cluster = {};
};

// The fastest division. What is wanted is taken as far as the matrix and the kernel allow.
inline Split choose_split(const Extents& of, int sm_count, const Wanted& wanted = {}) {
  // From what is wanted: where no tile has both, the columns decide.
  const auto distance = [&](const Tile& tile) {
    return (wanted.columns && tile.columns != *wanted.columns) * 2 +
           (wanted.rows && tile.rows != *wanted.rows);
  };
  int nearest = std::numeric_limits<int>::max();
  for (const Tile& tile : kTiles)
    if (may_take(tile, of)) nearest = std::min(nearest, distance(tile));
  Split best;
  for (const Tile& tile : kTiles) {
    if (!may_take(tile, of) || distance(tile) != nearest) continue;
    const std::int64_t limit =
        std::min<std::int64_t>(most_cluster(tile.columns), tiles_of(of.k, tile_k(of.value_bytes)));
    int most = 1;
    while (2 * most <= limit) most *= 2;
    for (int ctas = 1; ctas <= most; ctas *= 2) {
      if (wanted.cluster && ctas != std::min(*wanted.cluster, most)) continue;
      for (const bool whole_sm : {true, false}) {
        if (tile == kLargestTile && !whole_sm) continue;
        Split split{tile, ctas, whole_sm, 0};
        split.us = expected_us(of, split, sm_count);
        if (split.us < best.us) best = split;
      }
    }
  }
  return best;
}

}  // namespace spmmbench::dense_cluster
