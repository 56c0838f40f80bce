#pragma once

#include <cstdint>

#include "ptx/cp_async.cuh"
#include "ptx/keep.cuh"
#include "window/stage.cuh"

namespace spmmbench::window {

// This warp's copies of B: in every stage the same chunk of kCopies consecutive rows.
template <class Input, int kRowBytes>
class RowLoader {
  static constexpr int kChunks = kRowBytes / 16;
  static constexpr int kCopies = kTileColumns * kChunks / 32;

 public:
  __device__ RowLoader(const Arguments& in, std::int64_t feature, unsigned lane)
      : row_bytes_(in.b_row_bytes) {
    const unsigned chunk = lane % kChunks, row = lane / kChunks * kCopies;
    col_idx_ = in.col_idx + row;
    // Past the last feature nothing is fetched. Whatever lies in the row would do, but lanes that
    // copy the same 16 bytes to different places each cost a request (15 % at N = 100 in fp16).
    const std::int64_t at = feature + chunk * 16 / kInputBytes<Input>;
    outside_ = at < in.n ? 0 : -1;
    b_ = static_cast<const char*>(in.b) + (at < in.n ? at : 0) * kInputBytes<Input>;
    to_ = row * kRowBytes + (chunk ^ swizzle(row)) * 16;
    ptx::keep_in_register(col_idx_);
    ptx::keep_in_register(b_);
    ptx::keep_in_register(to_);
  }

  __device__ void read_columns(std::int32_t tile) {
#pragma unroll
    for (int i = 0; i < kCopies / 4; ++i)
      columns_[i] =
          __ldg(reinterpret_cast<const int4*>(col_idx_ + std::int64_t{tile} * kTileColumns) + i);
  }

  // The tile whose columns were read last.
  __device__ void copy(std::uint32_t stage) const {
#pragma unroll
    for (int j = 0; j < kCopies; ++j) {
      const int4& four = columns_[j / 4];
      const std::int32_t column = j % 4 == 0   ? four.x
                                  : j % 4 == 1 ? four.y
                                  : j % 4 == 2 ? four.z
                                               : four.w;
      // The first row is 0, 4, 8 or 12: the next row's swizzle differs by 1, and by 2 four rows on.
      const std::uint32_t to = (stage + to_ ^ j % 2 * 16 ^ j / 4 * 32) + j * kRowBytes;
      ptx::cp_async_cg_16_unless_negative(
          column | outside_, to,
          b_ + std::uint64_t{static_cast<std::uint32_t>(column)} * row_bytes_);
    }
  }

 private:
  const std::int32_t* col_idx_;
  const char* b_;
  std::uint32_t row_bytes_;
  std::uint32_t to_;      // where in a stage the first row goes
  std::int32_t outside_;  // -1 past the last feature: a negative column is not fetched
  int4 columns_[kCopies / 4];
};

}  // namespace spmmbench::window
