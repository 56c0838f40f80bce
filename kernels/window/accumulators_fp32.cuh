#pragma once
// Sums of a window in fp32, on the CUDA cores: tensor cores would round A and B to tf32. A lane has
// four features, a chunk of 16 bytes of each row of B, of every kGroups-th row of the window. It
// takes four columns at a time: one load has a row of A's values for all of them.
//
//   rows of B   | chunk 0 | chunk 1 | ...   of kChunks lanes' groups, kRowBytes in all
//   lane        kGroups * chunk + group     neighbours load the same chunk of B
//   its rows    group, group + kGroups, ..
//
// So sums are added column by column, each product by a fused multiplication and addition.

#include <cstdint>

#include "ptx/keep.cuh"
#include "ptx/ld_shared.cuh"
#include "window/accumulators.cuh"
#include "window/stage.cuh"

namespace spmmbench::window {

template <int kWindowRows, int kRowBytes>
class Accumulators<float, kWindowRows, kRowBytes> {
  static constexpr int kChunks = kRowBytes / 16, kGroups = 32 / kChunks;
  static constexpr int kRows = kWindowRows / kGroups;  // of a lane
  static_assert(kGroups == 2 || kGroups == 4);

 public:
  __device__ explicit Accumulators(unsigned lane)
      : chunk_(lane / kGroups * 16), group_(lane % kGroups) {
    clear();
    ptx::keep_in_register(chunk_);
  }

  __device__ void clear() {
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (float& sum : d_[r]) sum = 0;
  }

  __device__ void add(std::uint32_t stage, std::uint32_t box) {
    const std::uint32_t own = box + place_in_box(group_, 0);  // this lane's first row
#pragma unroll
    for (int four = 0; four < kTileColumns / 4; ++four) add_four(stage, own, four);
  }

  // All sums of this lane, in the order of for_each_four.
  __device__ auto& all() { return reinterpret_cast<float(&)[kRows * 4]>(d_); }

  // visit(index, four sums) for all of them, in a fixed order.
  template <class Visit>
  __device__ void for_each_four(Visit visit) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) visit(r, d_[r]);
  }

  // store(row_of(row of the window), first feature, four sums) for each four.
  template <class RowOf, class Store>
  __device__ void for_each_vector(RowOf row_of, Store store) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      store(row_of(r * kGroups + group_), chunk_ / sizeof(float),
            make_float4(d_[r][0], d_[r][1], d_[r][2], d_[r][3]));
  }

 private:
  __device__ void add_four(std::uint32_t stage, std::uint32_t own, int four) {
    // The places of other rows and columns differ by a sum and an xor.
    float values[kRows][4];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const std::uint32_t differs = place_in_box(r * kGroups, four) % kBoxRowBytes;
      load((own ^ differs) + r * kGroups * kBoxRowBytes, values[r]);
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int row = four * 4 + k;  // of the stage
      const std::uint32_t differs = place_of<kRowBytes>(row, 0) % kRowBytes;
      float b[4];
      load((stage + chunk_ ^ differs) + row * kRowBytes, b);
#pragma unroll
      for (int r = 0; r < kRows; ++r)
#pragma unroll
        for (int e = 0; e < 4; ++e) d_[r][e] = __fmaf_rn(values[r][k], b[e], d_[r][e]);
    }
  }

  __device__ static void load(std::uint32_t from, float (&to)[4]) {
    const uint4 x = ptx::ld_shared_v4(from);
    to[0] = __uint_as_float(x.x);
    to[1] = __uint_as_float(x.y);
    to[2] = __uint_as_float(x.z);
    to[3] = __uint_as_float(x.w);
  }

  std::uint32_t chunk_;  // bytes before it in a row of B
  unsigned group_;
  float d_[kRows][4];
};

}  // namespace spmmbench::window
