#pragma once
// Accumulators of one warpgroup to C. Lanes first exchange values until each holds four consecutive
// elements of a line of C's memory, then store them at once; lines are padded to 16 bytes, so only
// the first of the four needs to be inside.

#include "async_bcsr/shape.cuh"

namespace spmmbench::async_bcsr {

__device__ inline void store4(const Lines& c, std::int64_t line, std::int64_t at,
                              const float (&v)[4]) {
  if (line >= c.lines || at >= c.length) return;
  const std::int64_t element = line * c.ld + at;
  switch (c.type) {
    case ElementType::f32:
      __stcs(reinterpret_cast<float4*>(static_cast<float*>(c.data) + element),
             make_float4(v[0], v[1], v[2], v[3]));
      break;
    case ElementType::f16: {
      const __half2 low = __floats2half2_rn(v[0], v[1]), high = __floats2half2_rn(v[2], v[3]);
      __stcs(reinterpret_cast<uint2*>(static_cast<__half*>(c.data) + element),
             make_uint2(reinterpret_cast<const unsigned&>(low),
                        reinterpret_cast<const unsigned&>(high)));
      break;
    }
    case ElementType::bf16: {
      const __nv_bfloat162 low = __floats2bfloat162_rn(v[0], v[1]),
                           high = __floats2bfloat162_rn(v[2], v[3]);
      __stcs(reinterpret_cast<uint2*>(static_cast<__nv_bfloat16*>(c.data) + element),
             make_uint2(reinterpret_cast<const unsigned&>(low),
                        reinterpret_cast<const unsigned&>(high)));
      break;
    }
  }
}

// Row-major C. Lane t of a quad holds columns 2t, 2t + 1 of two 8-column tiles:
//   tile j   |00 11 22 33|       even lanes take tile j:     |0000 2222|
//   tile j+1 |00 11 22 33|       odd lanes take tile j + 1:  |1111 3333|
template <int kAccumulators>
__device__ void store_rows(const float (&acc)[kAccumulators], const Lines& c, std::int64_t row0,
                           std::int64_t n0) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const bool odd = t % 2 != 0;
  const std::int64_t row = row0 + threadIdx.x % kWarpgroup / 32 * 16 + g;
#pragma unroll
  for (int j = 0; j < kAccumulators; j += 8) {
    const std::int64_t col = n0 + j * 2 + (odd ? 8 + 2 * (t - 1) : 2 * t);
#pragma unroll
    for (int half = 0; half < 4; half += 2) {
      const float *even_tile = acc + j + half, *odd_tile = acc + j + 4 + half;
      float v[4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float other = __shfl_xor_sync(~0U, odd ? even_tile[i] : odd_tile[i], 1);
        v[i] = odd ? other : even_tile[i];
        v[i + 2] = odd ? odd_tile[i] : other;
      }
      store4(c, row + half * 4, col, v);
    }
  }
}

// Column-major C. Lanes g = 4a .. 4a + 3 of equal t hold one row each of four columns: a 4 x 4
// transpose in two exchanges leaves each with one column of four rows.
template <int kAccumulators>
__device__ void store_columns(const float (&acc)[kAccumulators], const Lines& c, std::int64_t row0,
                              std::int64_t n0) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, q = g % 4;
  const bool odd = q % 2 != 0, upper = q >= 2;
  const std::int64_t row = row0 + threadIdx.x % kWarpgroup / 32 * 16 + g / 4 * 4;
#pragma unroll
  for (int j = 0; j < kAccumulators; j += 8) {
    const std::int64_t col = n0 + j * 2 + (upper ? 8 : 0) + 2 * t + (odd ? 1 : 0);
#pragma unroll
    for (int half = 0; half < 4; half += 2) {
      float pair[2][2];  // [column q % 2 of tile j, of tile j + 1][row]
#pragma unroll
      for (int tile = 0; tile < 2; ++tile) {
        const float* const own = acc + j + 4 * tile + half;
        const float other = __shfl_xor_sync(~0U, odd ? own[0] : own[1], 4);
        pair[tile][0] = odd ? other : own[0];
        pair[tile][1] = odd ? own[1] : other;
      }
      float v[4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float other = __shfl_xor_sync(~0U, upper ? pair[0][i] : pair[1][i], 8);
        v[i] = upper ? other : pair[0][i];
        v[i + 2] = upper ? pair[1][i] : other;
      }
      store4(c, col, row + half * 4, v);
    }
  }
}

}  // namespace spmmbench::async_bcsr
