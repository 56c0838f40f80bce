#pragma once
// A of async_wcsr: each tile a dense row-major box of the window's rows and 16 packed columns.

#include "ptx/cp_async.cuh"
#include "ptx/cvt.cuh"
#include "ptx/keep.cuh"
#include "ptx/ld_shared.cuh"
#include "window/stage.cuh"

namespace spmmbench::wcsr {

template <class Input_, int kWindowRows_>
class DenseBoxes {
 public:
  using Input = Input_;
  using Source = const void*;  // [tiles][kWindowRows][16] values
  static constexpr int kWindowRows = kWindowRows_;
  static constexpr int kLead = 0;
  static constexpr int kStageBytes =
      kWindowRows * window::kTileColumns * window::kInputBytes<Input>;

  __device__ DenseBoxes(Source boxes, const TileSpan& span, int /*tiles*/, unsigned lane)
      : from_(static_cast<const char*>(boxes) + std::int64_t{span.first_tile} * kStageBytes +
              lane * kPiece),
        lane_(lane),
        to_(window::kIsFp32<Input> ? window::place_in_box(lane / 4, lane % 4) : lane * kPiece) {
    ptx::keep_in_register(from_);
  }

  __device__ void copy(int i, std::uint32_t to) const {
#pragma unroll
    for (int piece = 0; piece < kStageBytes; piece += 32 * kPiece)
      ptx::cp_async_ca<kPiece>(to + to_ + piece, from_ + i * kStageBytes + piece);
  }

  __device__ window::Fragment<Input, kWindowRows> load(std::uint32_t from) const {
    window::Fragment<Input, kWindowRows> out;
#pragma unroll
    for (int r = 0; r < kWindowRows / 8; ++r) {
      if constexpr (window::kInputBytes<Input> == 4)
        out.x[r] = ptx::ld_shared_v4(from + r * 512 + lane_ * 16);
      else if constexpr (window::kInputBytes<Input> == 1)
        out.x[r] = ptx::halves_of<Input>(ptx::ld_shared<0>(from + r * 128 + lane_ * 4));
      else out.x[r] = ptx::ld_shared_v2(from + r * 256 + lane_ * 8);
    }
    return out;
  }

 private:
  static constexpr int kPiece = kStageBytes < 512 ? kStageBytes / 32 : 16;  // bytes per lane

  const char* from_;
  unsigned lane_;
  unsigned to_;  // where in a stage's box the lane's pieces go
};

}  // namespace spmmbench::wcsr
