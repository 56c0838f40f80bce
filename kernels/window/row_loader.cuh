#pragma once

#include <cstdint>

#include "ptx/cp_async.cuh"
#include "ptx/keep.cuh"
#include "window/stage.cuh"

namespace spmmbench::window {

// This warp's copies of B: in every stage the same chunk of kCopies consecutive rows. The columns
// of eight tiles are read at once, four per lane, while those of the eight before are copied;
// shuffles hand them round.
template <class Input, int kRowBytes>
class RowLoader {
  static constexpr int kChunks = kRowBytes / 16;
  static constexpr int kCopies = kTileColumns * kChunks / 32;
  static constexpr int kColumnsPerLane = 4;
  static constexpr int kLanesPerTile = kTileColumns / kColumnsPerLane;
  static constexpr int kTilesAtOnce = 32 / kLanesPerTile;

 public:
  // For a span of `tiles` tiles from `first_tile` on.
  __device__ RowLoader(const Arguments& in, std::int32_t first_tile, int tiles,
                       std::int64_t feature, unsigned lane)
      : col_idx_(in.col_idx + std::int64_t{first_tile} * kTileColumns + lane * kColumnsPerLane),
        row_bytes_(in.b_row_bytes),
        lanes_left_(tiles * kLanesPerTile - static_cast<int>(lane)) {
    const unsigned chunk = lane % kChunks, row = lane / kChunks * kCopies;
    // Past the last feature nothing is fetched. Whatever lies in the row would do, but lanes that
    // copy the same 16 bytes to different places each cost a request (15 % at N = 100 in fp16).
    const std::int64_t at = feature + chunk * 16 / kInputBytes<Input>;
    outside_ = at < in.n ? 0 : -1;
    b_ = static_cast<const char*>(in.b) + (at < in.n ? at : 0) * kInputBytes<Input>;
    to_ = row * kRowBytes + (chunk ^ swizzle(row)) * 16;
    first_lane_ = row / kColumnsPerLane;
    ptx::keep_in_register(col_idx_);
    ptx::keep_in_register(b_);
    ptx::keep_in_register(to_);
    read_columns();
  }

  // Tile i of the span; every tile in turn.
  __device__ void copy(int i, std::uint32_t stage) {
    if (i % kTilesAtOnce == 0) {
      columns_ = next_columns_;
      read_columns();
    }
#pragma unroll
    for (int j = 0; j < kCopies; ++j) {
      const std::int32_t mine = j % 4 == 0   ? columns_.x
                                : j % 4 == 1 ? columns_.y
                                : j % 4 == 2 ? columns_.z
                                             : columns_.w;
      const std::int32_t column =
          __shfl_sync(kFullWarp, mine,
                      i % kTilesAtOnce * kLanesPerTile + static_cast<int>(first_lane_) + j / 4);
      // The first row is 0, 4, 8 or 12: the next row's swizzle differs by 1, and by 2 four rows on.
      const std::uint32_t to = (stage + to_ ^ j % 2 * 16 ^ j / 4 * 32) + j * kRowBytes;
      ptx::cp_async_cg_16_unless_negative(
          column | outside_, to,
          b_ + std::uint64_t{static_cast<std::uint32_t>(column)} * row_bytes_);
    }
  }

 private:
  __device__ void read_columns() {
    if (lanes_left_ > 0) next_columns_ = __ldg(reinterpret_cast<const int4*>(col_idx_));
    lanes_left_ -= 32;
    col_idx_ += kTilesAtOnce * kTileColumns;
  }

  const std::int32_t* col_idx_;  // of this lane's next columns
  const char* b_;
  std::uint32_t row_bytes_;
  int lanes_left_;        // positive while this lane has columns to read
  unsigned first_lane_;   // of a tile's lanes, the one with the first column that is copied here
  std::uint32_t to_;      // where in a stage the first row goes
  std::int32_t outside_;  // -1 past the last feature: a negative column is not fetched
  int4 columns_, next_columns_{};
};

}  // namespace spmmbench::window
