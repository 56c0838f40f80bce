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
  static constexpr bool kNarrow = kRowBytes < 128;
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
    const unsigned chunk = lane % kChunks;
    row_ = lane / kChunks * kCopies;
    // Past the last feature nothing is copied: what lies in the stage there gets into sums that
    // nobody stores. Lanes that copy zeros, or the same 16 bytes to different places each, would
    // cost as much as others (docs/decisions/window-cuts.md).
    const std::int64_t at = feature + chunk * 16 / kInputBytes<Input>;
    way_ = at >= in.n ? ptx::Way::none : in.cached ? ptx::Way::through_l1 : ptx::Way::past_l1;
    b_ = static_cast<const char*>(in.b) + (at < in.n ? at : 0) * kInputBytes<Input>;
    to_ = place_of<kRowBytes>(row_, chunk);
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
    std::int32_t columns[kCopies];
#pragma unroll
    for (int j = 0; j < kCopies; ++j) columns[j] = column_of(i % kTilesAtOnce, j);
    // One branch for all copies. In narrow tiles a predicate for each takes less time.
    if (!kNarrow && way_ == ptx::Way::none) return;
#pragma unroll
    for (int j = 0; j < kCopies; ++j) {
      // Rows that begin at a multiple of four: the place of the next row's chunk differs by 1, and
      // by 2 four rows on. Fewer rows have their chunk at the same place.
      const std::uint32_t differs = kCopies < kColumnsPerLane ? 0 : j % 2 * 16 ^ j / 4 * 32;
      const std::uint32_t to = (stage + to_ ^ differs) + j * kRowBytes;
      const char* const from =
          b_ + std::uint64_t{static_cast<std::uint32_t>(columns[j])} * row_bytes_;
      if constexpr (kNarrow) {
        ptx::cp_async_16_unless_negative(way_, columns[j], to, from);
      } else {
        ptx::cp_async_cg_16_unless_negative(columns[j], to, from);
      }
    }
  }

 private:
  // The column that copy j of a tile gathers.
  __device__ std::int32_t column_of(int tile, int j) const {
    const int lane = tile * kLanesPerTile + static_cast<int>(row_ / kColumnsPerLane) + j / 4;
    const auto handed = [&](int which) {
      return __shfl_sync(kFullWarp,
                         which == 0   ? columns_.x
                         : which == 1 ? columns_.y
                         : which == 2 ? columns_.z
                                      : columns_.w,
                         lane);
    };
    // Which of a lane's four columns it is depends on the row where a lane copies fewer rows.
    if constexpr (kCopies >= kColumnsPerLane) return handed(j % kColumnsPerLane);
    const auto of_pair = [&](int which) {
      const std::int32_t low = handed(which), high = handed(which + 2);
      return (row_ & 2) != 0 ? high : low;
    };
    if constexpr (kCopies == 2) return of_pair(j);
    const std::int32_t even = of_pair(0), odd = of_pair(1);
    return (row_ & 1) != 0 ? odd : even;
  }

  __device__ void read_columns() {
    if (lanes_left_ > 0) next_columns_ = __ldg(reinterpret_cast<const int4*>(col_idx_));
    lanes_left_ -= 32;
    col_idx_ += kTilesAtOnce * kTileColumns;
  }

  const std::int32_t* col_idx_;  // of this lane's next columns
  const char* b_;
  std::uint32_t row_bytes_;
  int lanes_left_;    // positive while this lane has columns to read
  unsigned row_;      // of a stage, the first that this lane copies
  std::uint32_t to_;  // where in a stage the first row goes
  ptx::Way way_;      // none past the last feature
  int4 columns_, next_columns_{};
};

}  // namespace spmmbench::window
