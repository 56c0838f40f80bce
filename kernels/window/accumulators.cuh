#pragma once

#include <cstdint>

#include "ptx/cvt.cuh"
#include "ptx/keep.cuh"
#include "ptx/ld_shared.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"
#include "ptx/prmt.cuh"
#include "window/stage.cuh"

namespace spmmbench::window {

// Accumulators of one window and feature tile, and how a stage is added to them.
template <class Input, int kWindowRows, int kRowBytes>
class Accumulators {
  static constexpr bool kTf32 = kInputBytes<Input> == 4, kFp8 = kInputBytes<Input> == 1;
  static constexpr int kMmaN = kWindowRows / 8;                      // of rows
  static constexpr int kMmaM = kRowBytes / kInputBytes<Input> / 16;  // of 16 features

 public:
  __device__ explicit Accumulators(unsigned lane) : lane_(lane) {
    clear();
    if constexpr (kTf32) {
      const unsigned row = lane % 4 * 4;
      fetch_ = place_of<kRowBytes>(row, lane / 4);
    } else {
      const unsigned slot = lane % 8, row = slot / 2 * 4 + slot % 2 + lane / 16 * 2;
      fetch_ = place_of<kRowBytes>(row, lane / 8 % 2);
    }
    ptx::keep_in_register(fetch_);
  }

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < kMmaM; ++i)
#pragma unroll
      for (int r = 0; r < kMmaN; ++r)
#pragma unroll
        for (int e = 0; e < 4; ++e) d_[i][r][e] = 0;
  }

  __device__ void add(std::uint32_t stage, const Fragment<Input, kWindowRows>& a) {
    if constexpr (kTf32) add_tf32(stage, a.x);
    else if constexpr (kFp8) add_fp8(stage, a.x);
    else add_16_bit(stage, a.x);
  }

  // All sums of this lane, in the order of for_each_four.
  __device__ auto& all() { return reinterpret_cast<float(&)[kMmaM * kMmaN * 4]>(d_); }

  // visit(index, four sums) for all of them, in a fixed order.
  template <class Visit>
  __device__ void for_each_four(Visit visit) {
#pragma unroll
    for (int i = 0; i < kMmaM; ++i)
#pragma unroll
      for (int r = 0; r < kMmaN; ++r) visit(i * kMmaN + r, d_[i][r]);
  }

  // In fp8: the first feature of the lane's vectors, to which for_each_vector adds multiples of 16.
  __device__ unsigned first_feature() const { return lane_ / 4 % 2 * 16 + lane_ / 8 * 4; }

  // For rows 8 * r + 2 * (lane % 4) + odd of the window: to = row_of(row), then
  // store(to, first feature, four sums) for each four. Whole lines of 128 bytes per instruction, if
  // a row of C has them, since halves of a 32-byte sector cost as much as all of it.
  template <class RowOf, class Store>
  __device__ void for_each_vector(RowOf row_of, Store store) const {
#pragma unroll
    for (int r = 0; r < kMmaN; ++r) {
      if constexpr (kMmaM == 1) {  // half of the lanes have the odd rows
        const float4 x = transpose(d_[0][r][0], d_[0][r][2], d_[0][r][1], d_[0][r][3]);
        store(row_of(row(r, lane_ / 8 % 2)), lane_ / 4 % 2 * 8 + lane_ / 16 * 4, x);
      } else {
        for_each_pair(r, row_of, store);
      }
    }
  }

 private:
  __device__ unsigned row(int r, int odd) const { return r * 8 + lane_ % 4 * 2 + odd; }

  template <class RowOf, class Store>
  __device__ void for_each_pair(int r, RowOf row_of, Store store) const {
#pragma unroll
    for (int odd = 0; odd < 2; ++odd) {
      const auto to = row_of(row(r, odd));
#pragma unroll
      for (int i = 0; i < kMmaM; i += 2) {
        const float x0 = d_[i][r][odd], x1 = d_[i][r][odd + 2];
        const float x2 = d_[i + 1][r][odd], x3 = d_[i + 1][r][odd + 2];
        if constexpr (kTf32) store(to, i * 16 + lane_ / 4 * 4, make_float4(x0, x1, x2, x3));
        else if constexpr (kFp8) store(to, i * 16 + first_feature(), of_pairs(x0, x1, x2, x3));
        else store(to, i * 16 + (lane_ / 4 % 4 * 8 + lane_ / 16 * 4), transpose(x0, x1, x2, x3));
      }
    }
  }

  // A lane has feature lane / 4 of four chunks of eight features. Four lanes trade so that each has
  // four features of chunk lane / 4 % 4.
  __device__ float4 transpose(float x0, float x1, float x2, float x3) const {
    const bool first = (lane_ & 4) != 0, second = (lane_ & 8) != 0;
    const float y0 = __shfl_xor_sync(kFullWarp, first ? x0 : x1, 4);
    const float y1 = __shfl_xor_sync(kFullWarp, first ? x2 : x3, 4);
    const float a0 = first ? y0 : x0, a1 = first ? x1 : y0;  // of chunk first
    const float b0 = first ? y1 : x2, b1 = first ? x3 : y1;  // of chunk 2 + first
    const float z0 = __shfl_xor_sync(kFullWarp, second ? a0 : b0, 8);
    const float z1 = __shfl_xor_sync(kFullWarp, second ? a1 : b1, 8);
    return second ? make_float4(z0, z1, b0, b1) : make_float4(a0, a1, z0, z1);
  }

  // A lane has features 2g and 2g + 1, g = lane / 4, of two chunks of 16. Two lanes trade so that
  // each has four features of chunk g % 2.
  __device__ float4 of_pairs(float x0, float x1, float x2, float x3) const {
    const bool second = (lane_ & 4) != 0;
    const float y0 = __shfl_xor_sync(kFullWarp, second ? x0 : x2, 4);
    const float y1 = __shfl_xor_sync(kFullWarp, second ? x1 : x3, 4);
    return second ? make_float4(y0, y1, x2, x3) : make_float4(x0, x1, y0, y1);
  }

  // An element of ldmatrix is two features of a row of B. Their bytes are parted, so that a pair is
  // one feature of two rows, and become fp16, which is exact: rows g and g + 8 of mma are features
  // 2g and 2g + 1.
  __device__ void add_fp8(std::uint32_t stage, const uint2 (&a)[kMmaN]) {
#pragma unroll
    for (int i = 0; i < kMmaM; i += 2) {
      std::uint32_t b[4];
      ptx::ldmatrix_x4_trans(b, stage + fetch_ ^ i / 2 * 32);
#pragma unroll
      for (int chunk = 0; chunk < 2; ++chunk) {
        const std::uint32_t first = ptx::prmt(b[chunk], 0, 0x3120);
        const std::uint32_t second = ptx::prmt(b[chunk + 2], 0, 0x3120);
        const uint2 low = ptx::halves_of<Input>(first), high = ptx::halves_of<Input>(second);
#pragma unroll
        for (int r = 0; r < kMmaN; ++r)
          ptx::mma_m16n8k16(__half{}, d_[i + chunk][r], low.x, low.y, high.x, high.y, a[r].x,
                            a[r].y);
      }
    }
  }

  __device__ void add_16_bit(std::uint32_t stage, const uint2 (&a)[kMmaN]) {
#pragma unroll
    for (int i = 0; i < kMmaM; ++i) {
      std::uint32_t b[4];
      ptx::ldmatrix_x4_trans(b, (stage + fetch_ ^ i % 4 * 32) + i / 4 * 128);
#pragma unroll
      for (int r = 0; r < kMmaN; ++r)
        ptx::mma_m16n8k16(Input{}, d_[i][r], b[0], b[1], b[2], b[3], a[r].x, a[r].y);
    }
  }

  __device__ void add_tf32(std::uint32_t stage, const uint4 (&a)[kMmaN]) {
#pragma unroll
    for (int i = 0; i < kMmaM; i += 2)
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        const std::uint32_t from = step * 2 * kRowBytes + i / 2 * 128;
        const uint4 even = ptx::ld_shared_v4(stage + fetch_ + from);
        const uint4 odd = ptx::ld_shared_v4((stage + fetch_ ^ 16) + kRowBytes + from);
#pragma unroll
        for (int r = 0; r < kMmaN; ++r) {
          const std::uint32_t b0 = step == 0 ? a[r].x : a[r].z, b1 = step == 0 ? a[r].y : a[r].w;
          ptx::mma_m16n8k8(Input{}, d_[i][r], even.x, even.y, odd.x, odd.y, b0, b1);
          ptx::mma_m16n8k8(Input{}, d_[i + 1][r], even.z, even.w, odd.z, odd.w, b0, b1);
        }
      }
  }

  unsigned lane_;
  std::uint32_t fetch_;  // where in a stage; other chunks differ by an xor, other rows by a sum
  float d_[kMmaM][kMmaN][4];
};

}  // namespace spmmbench::window
