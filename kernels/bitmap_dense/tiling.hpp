#pragma once
// How bitmap_dense divides a product among CTAs. The kernel and auto's predictions use the same.

namespace spmmbench::bitmap_dense {

// Columns of a tile of C, powers of two.
inline constexpr int kNarrowestTile = 16, kWidestTile = 256, kWidestTileInFp8 = 64;

// As many warps decode as registers and shared memory allow.
constexpr int warpgroups_of(int tile_columns) {
  return tile_columns == kWidestTile ? 2 : tile_columns >= 64 ? 3 : 4;
}

// The cost of a piece: it begins with loads that wait for each other and ends with a sum that goes
// to memory, about as long as a unit of 256 columns takes. Counting it gains 2 to 4 % on 18944 x
// 3584 (docs/decisions/bitmap-dense.md).
inline constexpr int kPieceUnits = 1;
// The cost of joining a part of a panel's sums, with tiles of 256 columns: 6 us, while a unit takes
// 2.8 us (docs/decisions/bitmap-dense.md).
inline constexpr int kPartUnits = 2;

}  // namespace spmmbench::bitmap_dense
