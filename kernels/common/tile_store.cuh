#pragma once
// Accumulators of one warpgroup to C, by way of shared memory: TMA stores whole lines and clips at
// the edges of C while the warpgroup goes on.
//
// A chunk is 64 rows x 128 bytes of columns, as 64 lines of 128 bytes in the 128-byte swizzle:
//   row-major             line r           row r
//   column-major, 16 bit  line c           column c, 64 rows
//   column-major, fp32    line 32h + c     column c, rows 32h .. 32h + 31
// No two lanes of a warp (of a half warp for 8-byte stores) write to the same bank.

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "gpu/tensor_map.hpp"
#include "ptx/cuda_ptx.cuh"
#include "spmmbench/device.hpp"

namespace spmmbench::tile_store {

inline constexpr int kRows = 64, kLineBytes = 128, kBoxLines = 32;
inline constexpr int kChunkBytes = kRows * kLineBytes;
inline constexpr int kWarpgroup = 128;

// The map of C with which chunks are copied.
inline CUtensorMap map_of(const DenseView& c) {
  return make_tensor_map(c, kBoxLines, static_cast<std::uint32_t>(kLineBytes / bytes_of(c.type)),
                         {.swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
}

// Columns of a chunk.
template <bool kWide>
inline constexpr int kColumns = kWide ? 32 : 64;

__device__ inline std::uint32_t pack16(float low, float high, ElementType type) {
  switch (type) {
    case ElementType::f16: {
      const __half2 both = __floats2half2_rn(low, high);
      return reinterpret_cast<const std::uint32_t&>(both);
    }
    case ElementType::bf16: {
      const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
      return reinterpret_cast<const std::uint32_t&>(both);
    }
    default: break;  // never packed
  }
  __builtin_unreachable();
}

// A value to its place in the swizzle.
template <class Value>
__device__ void put(char* chunk, int line, int byte, Value value) {
  *reinterpret_cast<Value*>(chunk + line * kLineBytes + (byte ^ (line % 8) << 4)) = value;
}

// One chunk. d[4j ..]: the accumulators of its column tile j.
template <bool kWide, Layout kLayout>
__device__ void write_chunk(const float* d, char* chunk, ElementType type) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int warp = threadIdx.x % kWarpgroup / 32;
  const bool odd = g % 2 != 0;
#pragma unroll
  for (int j = 0; j < (kWide ? 4 : 8); ++j)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = warp * 16 + half * 8 + g;
      const float *const own = d + 4 * j + 2 * half, *const far = d + 4 * (j ^ 2) + 2 * half;
      if constexpr (kWide && kLayout == Layout::row_major) {
        // Odd rows store the tile after the next: two rows of one tile would share banks.
        put(chunk, row, (odd ? j ^ 2 : j) * 32 + t * 8,
            odd ? make_float2(far[0], far[1]) : make_float2(own[0], own[1]));
      } else if constexpr (kWide) {
#pragma unroll
        for (int i = 0; i < 2; ++i)
          put(chunk, row / 32 * 32 + 8 * j + 2 * t + i, row % 32 * 4, own[i]);
      } else if constexpr (kLayout == Layout::row_major) {
        put(chunk, row, j * 16 + t * 4, pack16(own[0], own[1], type));
      } else {
        // Lanes of rows g, g ^ 1 exchange: each ends with one column of both.
        const float other = __shfl_xor_sync(~0U, odd ? own[0] : own[1], 4);
        put(chunk, 8 * j + 2 * t + (odd ? 1 : 0), row / 2 * 4,
            odd ? pack16(other, own[1], type) : pack16(own[0], other, type));
      }
    }
}

// One chunk of row-major C, whose transpose was multiplied: a warp's rows g and g + 8 of C^T are
// the columns 2g and 2g + 1 of C, and d[4j], d[4j + 1] neighbours in a row of it. The lines are
// those of column-major C^T.
template <bool kWide>
__device__ void write_transposed_chunk(const float* d, char* chunk, ElementType type) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int column = threadIdx.x % kWarpgroup / 32 * 16 + 2 * g;
#pragma unroll
  for (int j = 0; j < (kWide ? 4 : 8); ++j)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float* const two = d + 4 * j + 2 * i;
      const int line = 8 * j + 2 * t + i;
      if constexpr (kWide)
        put(chunk, column / 32 * 32 + line, column % 32 * 4, make_float2(two[0], two[1]));
      else put(chunk, line, column * 2, pack16(two[0], two[1], type));
    }
}

// Copies a chunk to C from (row, column) on; one thread calls it.
template <bool kWide, Layout kLayout>
__device__ void copy_chunk(const CUtensorMap& map, const char* chunk, int row, int column) {
#pragma unroll
  for (int box = 0; box < kRows; box += kBoxLines) {
    const std::int32_t at[2] = {
        kLayout == Layout::row_major ? column : row + (kWide ? box : 0),
        kLayout == Layout::row_major ? row + box : column + (kWide ? 0 : box)};
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &map, at,
                              chunk + box * kLineBytes);
  }
}

// Calls run.operator()<kWide, kLayout>() with whether C is fp32, and with its layout.
template <class Run>
__device__ void with_kind(ElementType type, Layout layout, Run&& run) {
  const bool rows = layout == Layout::row_major;
  if (type == ElementType::f32) {
    if (rows) run.template operator()<true, Layout::row_major>();
    else run.template operator()<true, Layout::col_major>();
  } else {
    if (rows) run.template operator()<false, Layout::row_major>();
    else run.template operator()<false, Layout::col_major>();
  }
}

}  // namespace spmmbench::tile_store
