#pragma once
// Pattern extraction: one pass over each operand. A's also writes the lines that survive.

#include "esmm/operands.cuh"

namespace spmmbench::esmm {

inline constexpr int kExtractWarps = 4;
inline constexpr int kExtractStrips = 4;    // strips of B per warp
inline constexpr int kTransposePitch = 36;  // floats; 16-byte accesses of 8 lanes hit all banks

// One warp per 32 x 32 block of A: lane l holds column l, so that a ballot is the block's word.
static __global__ void __launch_bounds__(kExtractWarps * 32)
    extract_a(const float* __restrict__ a, std::int64_t lda, int m, int k, int words,
              bool all_lines, std::uint32_t* __restrict__ bits, float* __restrict__ lines) {
  __shared__ float4 transpose[kExtractWarps][32][kTransposePitch / 4];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int blocks_per_strip = words / kExtractWarps;
  const int strip = static_cast<int>(blockIdx.x) / blocks_per_strip;
  const int word = static_cast<int>(blockIdx.x) % blocks_per_strip * kExtractWarps + warp;
  const int first_k = word * 32;
  const std::int64_t first_row = static_cast<std::int64_t>(strip) * kStrip;

  float column[kStrip];
  bool nonzero = false;
  const bool inside = first_k + lane < k;
  const float* source = a + first_row * lda + first_k + lane;
#pragma unroll
  for (int r = 0; r < kStrip; ++r) {
    column[r] = inside && first_row + r < m ? __ldcs(source + r * lda) : 0.0F;
  }
#pragma unroll
  for (int r = 0; r < kStrip; ++r) nonzero |= column[r] != 0.0F;
  const std::uint32_t set = __ballot_sync(kFullWarp, nonzero);
  if (lane == 0) bits[static_cast<std::int64_t>(strip) * words + word] = set;
  const std::uint32_t written = all_lines ? __ballot_sync(kFullWarp, inside) : set;
  if (written == 0) return;

#pragma unroll
  for (int r = 0; r < kStrip; r += 4) {
    transpose[warp][lane][r / 4] =
        make_float4(column[r], column[r + 1], column[r + 2], column[r + 3]);
  }
  __syncwarp();
  // Eight lanes write one line of 128 bytes.
  auto* out =
      reinterpret_cast<float4*>(lines + (static_cast<std::int64_t>(strip) * k + first_k) * kStrip);
#pragma unroll
  for (int first = 0; first < 32; first += 4) {
    const int line = first + lane / 8;
    if ((written >> line & 1) != 0) out[line * 8 + lane % 8] = transpose[warp][line][lane % 8];
  }
}

// One warp per 32 rows x 4 strips of B: eight lanes read a strip's 128 bytes of a row.
static __global__ void __launch_bounds__(kExtractWarps * 32)
    extract_b(const float* __restrict__ b, std::int64_t ldb, int k, int n, int strips, int words,
              std::uint32_t* __restrict__ bits) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int word = static_cast<int>(blockIdx.x) % (words / kExtractWarps) * kExtractWarps +
                   static_cast<int>(threadIdx.x) / 32;
  const int first_strip = static_cast<int>(blockIdx.x) / (words / kExtractWarps) * kExtractStrips;
  const std::int64_t col = static_cast<std::int64_t>(first_strip) * kStrip + lane * 4;
  const int valid = static_cast<int>(min(static_cast<std::int64_t>(4), n - col));  // < 1: outside

  std::uint32_t mine = 0;
#pragma unroll 16
  for (int i = 0; i < 32; ++i) {
    const int row = word * 32 + i;
    float4 four = make_float4(0, 0, 0, 0);
    if (row < k && valid > 0) {
      four =
          __ldcs(reinterpret_cast<const float4*>(b + static_cast<std::int64_t>(row) * ldb + col));
    }
    const bool nonzero = four.x != 0 || (valid > 1 && four.y != 0) || (valid > 2 && four.z != 0) ||
                         (valid > 3 && four.w != 0);
    const std::uint32_t ballot = __ballot_sync(kFullWarp, nonzero);
    const bool set = (ballot >> (lane / 8 * 8) & 0xFF) != 0;
    mine |= static_cast<std::uint32_t>(set) << i;
  }
  const int strip = first_strip + lane / 8;
  if (lane % 8 == 0 && strip < strips) bits[static_cast<std::int64_t>(strip) * words + word] = mine;
}

}  // namespace spmmbench::esmm
