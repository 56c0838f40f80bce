#pragma once
// RS-Tile as a kernel reads it. Groups of 8 columns of a window stand in pairs, tiles of 16
// columns, one k step of mma. One record has all that a warp needs of A for such a tile, and is
// copied in pieces of 16 bytes.
//
//   record  | half bitmap, offset | half bitmap, offset | .. | values in the order of the bits |
//
// The tile's blocks come by row, then column: block 2h + k has rows 8h .. 8h + 7 and columns 8k ..
// 8k + 7. Each half of a block, rows 0 .. 3 and 4 .. 7, has its 32 bits and the place of its first
// value, in bytes from the record's beginning: the paper's value offset of a block. Zeros fill up
// the last piece.

#include <cstdint>
#include <vector>

#include "rsh/format.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench::rsh {

// Where things lie in a record, in bytes.
template <int kWindowRows>
struct RsRecord {
  static constexpr int kHalves = kWindowRows / RsTile::kBlockRows * 2 * 2;
  static constexpr int kValues = kHalves * 8;
  static constexpr int most_bytes(int value_bytes) {
    return kValues + kWindowRows * 2 * RsTile::kGroupColumns * value_bytes;
  }
};

struct RsImage {
  static constexpr int kTileColumns = 2 * RsTile::kGroupColumns;
  static constexpr std::int32_t kPadding = -1;

  std::vector<std::int32_t> window_ptr;   // windows + 1, in tiles
  std::vector<std::int32_t> col_idx;      // tiles * kTileColumns; kPadding fills up a window
  std::vector<std::uint32_t> record_ptr;  // tiles + 1, in pieces of 16 bytes
  std::vector<std::uint32_t> records;     // 4 per piece
  std::vector<std::int32_t> row_ids;      // window_rows per window; kPadding where it has fewer

  std::int64_t tiles() const { return window_ptr.back(); }
  std::int64_t windows() const { return static_cast<std::int64_t>(window_ptr.size()) - 1; }

  // Parallel; the same result whatever the thread count. Values must be exact in `value_type`.
  // Throws Error beyond 2^32 - 1 pieces.
  static RsImage build(const RsTile& matrix, ElementType value_type);
};

}  // namespace spmmbench::rsh
