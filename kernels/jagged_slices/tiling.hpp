#pragma once
// How the lanes of a warp share out a row of B, and from how many entries on a row of A is cut.

#include <algorithm>
#include <cstdint>

namespace spmmbench::jagged {

inline constexpr int kWarpLanes = 32;

// How the columns of a row of B are shared out.
struct Tiling {
  int columns;  // of a lane: 1, 2, 4 or 8
  int lanes;    // of a row of B, a power of two
};

// 16 bytes at a time, in fp8 half: more sums than 8 would leave room for fewer warps.
constexpr int most_columns(int value_bytes) { return std::min(16 / value_bytes, 8); }

constexpr Tiling tile_columns(std::int64_t n, int value_bytes) {
  if (n == 1) return {1, 1};
  const int most = most_columns(value_bytes);
  if (n <= 4 && most > 4) return {4, 1};
  int lanes = 1;
  while (lanes * most < n) lanes *= 2;
  return {most, lanes};
}

// Most entries of a lane in a row that one slice takes whole. A product with a vector ends when its
// longest row does. Measured (docs/decisions/jagged-slices.md).
constexpr int whole_steps(std::int64_t nonzeros, bool of_vector_with_long_row) {
  constexpr std::int64_t kFullDevice = 1'200'000;
  if (nonzeros > kFullDevice) return 32;
  return of_vector_with_long_row ? 8 : 16;
}

}  // namespace spmmbench::jagged
