#pragma once
// What the parts of the window engine share: arguments, the layout of a stage, the fragment of A.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "format/tile_work.hpp"
#include "gpu/element.cuh"
#include "ptx/tf32.cuh"

namespace spmmbench::window {

constexpr int kTileColumns = 16;
constexpr unsigned kFullWarp = 0xFFFFFFFFU;
constexpr int kMaxThreads = 128;  // of a CTA

struct Arguments {
  const TileSpan* spans;
  const TileSplit* splits;
  const std::int32_t* window_ptr;  // tiles before every window, and in all
  const std::int32_t* col_idx;     // 16 per tile; -1 fills up a window's last
  const std::int32_t* row_ids;  // place -> row of C, -1 for none; null when the places are the rows
  std::int32_t places;
  std::int32_t windows;
  const void* b;
  std::uint32_t b_row_bytes;
  void* c;
  std::int64_t ldc;
  std::int64_t n;
  bool cached;                // narrow rows of B come by way of the L1 cache
  bool ordered;               // how the CTAs of a split window add up, see add_parts
  float* sums;                // of split windows: [slot][feature tile][vector][lane][4]
  unsigned* arrivals;         // [split][feature tile]; all zero between launches
  bool release_early = true;  // see window/launch.hpp
  float scale = 1;            // of A times that of B, in fp8
};

template <class Input>
constexpr int kInputBytes = 2;
template <>
constexpr int kInputBytes<ptx::Tf32> = 4;
template <>
constexpr int kInputBytes<float> = 4;  // on the CUDA cores
template <>
constexpr int kInputBytes<__nv_fp8_e4m3> = 1;  // in memory; mma takes them as fp16
template <>
constexpr int kInputBytes<__nv_fp8_e5m2> = 1;

template <class Input>
constexpr bool kIsFp32 = std::is_same_v<Input, float>;

template <class Operand, int kRowBytes, int kStages>
struct Shape {
  using Input = typename Operand::Input;
  static constexpr int kFeatures = kRowBytes / kInputBytes<Input>;  // of a feature tile
  // A multiple of 128, so that chunks are addressed by xor.
  static constexpr int kStageBytes =
      (kTileColumns * kRowBytes + Operand::kStageBytes + 127) / 128 * 128;
  static constexpr int kSumVectors = Operand::kWindowRows * kFeatures / 128;  // float4 per lane
  // The ring of a warp. The sums of a warp pass through it when windows are shared.
  static constexpr int kRingBytes = std::max(kStages * kStageBytes, kSumVectors * 512);
  static_assert(kRingBytes % 128 == 0);
  static_assert(kRowBytes == 32 || kRowBytes == 64 || kRowBytes == 128 || kRowBytes == 256,
                "a row is 2, 4, 8 or 16 chunks of 16 bytes");
};

// A's values of one tile that a lane multiplies: for each eight rows, row lane / 4,
// columns 4t .. 4t + 3 with t = lane % 4.
template <class Input, int kWindowRows>
struct Fragment {
  std::conditional_t<kInputBytes<Input> == 4, uint4, uint2> x[kWindowRows / 8];
};

// Where four neighbouring columns of a row lie in A's part of a stage: four neighbouring rows have
// theirs in different banks.
constexpr int kBoxRowBytes = kTileColumns * sizeof(float);
__device__ constexpr unsigned place_in_box(unsigned row, unsigned four) {
  return row * kBoxRowBytes + (four ^ row / 2 % 4) * 16;
}

// Where chunk c of row r lies in a stage: the same chunk of the eight rows of an ldmatrix (4t and
// 4t + 1, or 4t + 2 and 4t + 3), and of the rows 4t + j of four lanes, is in different banks.
template <int kRowBytes>
__device__ inline unsigned place_of(unsigned row, unsigned chunk) {
  if constexpr (kRowBytes == 32) {
    const unsigned place = row % 2 + row / 4 % 2 * 2 + row / 2 % 2 * 4 + row / 8 * 8;
    return place * kRowBytes + (chunk ^ row / 8) * 16;
  } else if constexpr (kRowBytes == 64) {
    return row * kRowBytes + (chunk ^ row / 4) * 16;
  } else {
    return row * kRowBytes + (chunk ^ (row / 4 * 2 + row % 2)) * 16;
  }
}

}  // namespace spmmbench::window
