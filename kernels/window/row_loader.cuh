#pragma once

#include <cstdint>

#include "ptx/cp_async.cuh"
#include "ptx/keep.cuh"
#include "ptx/ld_shared.cuh"
#include "window/stage.cuh"

namespace spmmbench::window {

// What a lane copies of a tile of B: the same chunk of kCopies rows, which `columns` name.
template <int kRowBytes>
struct LaneCopies {
  static constexpr int kChunks = kRowBytes / 16;
  static constexpr int kCopies = kTileColumns * kChunks / 32;
  static constexpr bool kNarrow = kRowBytes < 128;
  static constexpr int kColumnsPerLane = 4;

  const char* b;  // the chunk of row 0
  std::uint32_t row_bytes;
  std::uint32_t to;  // where in a stage the first row goes

  __device__ void copy(const std::int32_t* columns, ptx::Way way, std::uint32_t stage) const {
    // One branch for all copies. In narrow tiles a predicate for each takes less time.
    if (!kNarrow && way == ptx::Way::none) return;
#pragma unroll
    for (int j = 0; j < kCopies; ++j) {
      // Rows that begin at a multiple of four: the place of the next row's chunk differs by 1, and
      // by 2 four rows on. Fewer rows have their chunk at the same place.
      const std::uint32_t differs = kCopies < kColumnsPerLane ? 0 : j % 2 * 16 ^ j / 4 * 32;
      const std::uint32_t place = (stage + to ^ differs) + j * kRowBytes;
      const char* const from =
          b + std::uint64_t{static_cast<std::uint32_t>(columns[j])} * row_bytes;
      if constexpr (kNarrow) {
        ptx::cp_async_16_unless_negative(way, columns[j], place, from);
      } else {
        ptx::cp_async_cg_16_unless_negative(columns[j], place, from);
      }
    }
  }
};

// This warp's copies of B, tile by tile. The columns of eight tiles are read at once, four per
// lane, while those of the eight before are copied; shuffles hand them round.
template <class Input, int kRowBytes>
class RowLoader {
  using Copies = LaneCopies<kRowBytes>;
  static constexpr int kChunks = Copies::kChunks, kCopies = Copies::kCopies,
                       kColumnsPerLane = Copies::kColumnsPerLane;
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
    Copies{b_, row_bytes_, to_}.copy(columns, way_, stage);
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

// The same for values of 8 bits: the columns pass through shared memory, eight tiles in each half
// of kColumnBytes. That takes eight registers and several instructions a tile less. Values of 8
// bits need more of both than others, since they become fp16 on their way to mma.
constexpr int kColumnTiles = 8;
constexpr int kColumnBytes = 2 * kColumnTiles * kTileColumns * sizeof(std::int32_t);  // of a warp

template <class Input, int kRowBytes>
class RowLoaderOfBytes {
  using Copies = LaneCopies<kRowBytes>;
  static constexpr int kChunks = Copies::kChunks, kCopies = Copies::kCopies,
                       kColumnsPerLane = Copies::kColumnsPerLane;
  static_assert(kCopies == 1 || kCopies == 2 || kCopies == kColumnsPerLane);

 public:
  // `columns`: the warp's shared memory for them.
  __device__ RowLoaderOfBytes(const Arguments& in, std::int32_t first_tile, int tiles,
                              std::int64_t feature, unsigned lane, std::uint32_t columns)
      : col_idx_(in.col_idx + std::int64_t{first_tile} * kTileColumns + lane * kColumnsPerLane),
        row_bytes_(in.b_row_bytes),
        lanes_left_(tiles * kTileColumns / kColumnsPerLane - static_cast<int>(lane)) {
    const unsigned chunk = lane % kChunks, row = lane / kChunks * kCopies;
    const std::int64_t at = feature + chunk * 16 / kInputBytes<Input>;
    const ptx::Way way = at >= in.n  ? ptx::Way::none
                         : in.cached ? ptx::Way::through_l1
                                     : ptx::Way::past_l1;
    way_ = static_cast<std::uint32_t>(way);
    b_ = static_cast<const char*>(in.b) + (at < in.n ? at : 0) * kInputBytes<Input>;
    to_ = place_of<kRowBytes>(row, chunk);
    write_ = columns + lane * 16;
    read_ = columns + row * sizeof(std::int32_t);
    ptx::keep_in_register(col_idx_);
    ptx::keep_in_register(b_);
    ptx::keep_in_register(to_);
    ptx::keep_in_register(way_);
    ptx::keep_in_register(write_);
    ptx::keep_in_register(read_);
    copy_columns(0);
    ptx::cp_async_commit_group();
  }

  // Before the first tile.
  __device__ void await_columns() const {
    ptx::cp_async_wait_group<0>();
    __syncwarp();
  }

  // Tile i of the span; every tile in turn, once all lanes are done with the one before.
  __device__ void copy(int i, std::uint32_t stage) {
    if (i % kColumnTiles == 0) copy_columns(i / kColumnTiles + 1);
    std::int32_t columns[kColumnsPerLane];
    const std::uint32_t from =
        read_ + i % (2 * kColumnTiles) * static_cast<int>(kTileColumns * sizeof(std::int32_t));
    if constexpr (kCopies == kColumnsPerLane) {
      const uint4 four = ptx::ld_shared_v4(from);
      columns[0] = four.x, columns[1] = four.y, columns[2] = four.z, columns[3] = four.w;
    } else if constexpr (kCopies == 2) {
      const uint2 two = ptx::ld_shared_v2(from);
      columns[0] = two.x, columns[1] = two.y;
    } else {
      columns[0] = ptx::ld_shared<0>(from);
    }
    Copies{b_, row_bytes_, to_}.copy(columns, static_cast<ptx::Way>(way_), stage);
  }

 private:
  // Copies columns for the tiles of one half, four a lane. They arrive with the next tile's copy.
  __device__ void copy_columns(int half) {
    if (lanes_left_ > 0) ptx::cp_async_ca<16>(write_ + half % 2 * (kColumnBytes / 2), col_idx_);
    lanes_left_ -= 32;
    col_idx_ += kColumnTiles * kTileColumns;
  }

  const std::int32_t* col_idx_;  // of this lane's next columns
  const char* b_;
  std::uint32_t row_bytes_;
  int lanes_left_;              // positive while this lane has columns to copy
  std::uint32_t write_, read_;  // this lane's columns in shared memory: those it copies, and uses
  std::uint32_t to_;            // where in a stage the first row goes
  std::uint32_t way_;           // a ptx::Way, none past the last feature
};

}  // namespace spmmbench::window
