#pragma once
// Residual rows on the CUDA cores: a group of lanes per row and strip, four features per lane, no
// staging. Rows without entries are written as zeros here.

#include <cuda_runtime.h>

#include "gpu/element.cuh"
#include "rsh/tile.cuh"

namespace spmmbench::rsh {

template <class Input>
__device__ inline float4 load_four(const char* from) {
  if constexpr (kIsTf32<Input>) {
    return __ldg(reinterpret_cast<const float4*>(from));
  } else {
    const uint2 raw = __ldg(reinterpret_cast<const uint2*>(from));
    const Input* const x = reinterpret_cast<const Input*>(&raw);
    return make_float4(to_float(x[0]), to_float(x[1]), to_float(x[2]), to_float(x[3]));
  }
}

template <class Input>
__device__ inline float load_factor(const void* values, std::int64_t index) {
  if constexpr (kIsTf32<Input>) return __ldg(static_cast<const float*>(values) + index);
  else return to_float(static_cast<const Input*>(values)[index]);
}

constexpr int kResidualRows = 4;  // of a group of lanes, together

// Residual rows that one block has.
template <class Input, int kRowBytes>
__host__ __device__ constexpr int residual_rows_per_block(int threads, int strips) {
  constexpr int kLanes = kRowBytes / kInputBytes<Input> / 4;
  return threads / kLanes / strips * kResidualRows;
}

template <class Input, int kRowBytes>
__device__ inline void multiply_residual(const Arguments& in, std::int64_t block) {
  constexpr int kFeatures = kRowBytes / kInputBytes<Input>, kLanes = kFeatures / 4;
  const Residual& a = in.residual;
  const int group = threadIdx.x / kLanes, groups = blockDim.x / kLanes / in.strips;
  const std::int64_t strip = std::int64_t{blockIdx.y} * in.strips + group % in.strips;
  const std::int64_t feature = strip * kFeatures + threadIdx.x % kLanes * 4;
  if (feature >= in.n) return;
  const char* const b = static_cast<const char*>(in.b) + feature * kInputBytes<Input>;

  // Neighbours in the list have the same length nearly always, so that the loads of all rows are in
  // flight together.
  const std::int64_t first = (block * groups + group / in.strips) * kResidualRows;
  std::int32_t row[kResidualRows];
  std::int64_t entry[kResidualRows];
  int length[kResidualRows], longest = 0;
  int same = 0;  // length of the row before
#pragma unroll
  for (int i = 0; i < kResidualRows; ++i) {
    const std::int64_t index = first + i;
    const bool inside = index < a.count;
    row[i] = inside ? __ldg(a.rows + index) : -1;
    if (inside)
      while (index >= a.first[same + 1]) ++same;
    length[i] = inside ? same : 0;
    entry[i] = a.entry[same] + (index - a.first[same]) * same;
    longest = max(longest, length[i]);
  }
  float4 sum[kResidualRows] = {};
#pragma unroll 1
  for (int j = 0; j < longest; ++j) {
    std::int32_t col[kResidualRows];
    float value[kResidualRows];
#pragma unroll
    for (int i = 0; i < kResidualRows; ++i) {
      const bool inside = j < length[i];
      col[i] = inside ? __ldg(a.cols + entry[i] + j) : -1;
      value[i] = inside ? load_factor<Input>(a.values, entry[i] + j) : 0;
    }
#pragma unroll
    for (int i = 0; i < kResidualRows; ++i) {
      if (col[i] < 0) continue;
      const float4 x =
          load_four<Input>(b + std::uint64_t{static_cast<std::uint32_t>(col[i])} * in.b_row_bytes);
      sum[i].x += value[i] * x.x;
      sum[i].y += value[i] * x.y;
      sum[i].z += value[i] * x.z;
      sum[i].w += value[i] * x.w;
    }
  }
#pragma unroll
  for (int i = 0; i < kResidualRows; ++i)
    if (row[i] >= 0) __stcs(reinterpret_cast<float4*>(in.c + row[i] * in.ldc + feature), sum[i]);
}

}  // namespace spmmbench::rsh
