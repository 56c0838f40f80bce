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

constexpr int kResidualRows = 4;  // of a group of lanes, one after the other

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

  std::int64_t index = block * groups * kResidualRows + group / in.strips;
#pragma unroll 2
  for (int i = 0; i < kResidualRows; ++i, index += groups) {
    if (index >= a.count) return;
    int length = 0;
    while (index >= a.first[length + 1]) ++length;
    std::int64_t entry = a.entry[length] + (index - a.first[length]) * length;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
    for (int j = 0; j < length; ++j, ++entry) {
      const auto col = static_cast<std::uint32_t>(__ldg(a.cols + entry));
      const float value = load_factor<Input>(a.values, entry);
      const float4 x = load_four<Input>(b + std::uint64_t{col} * in.b_row_bytes);
      sum.x += value * x.x;
      sum.y += value * x.y;
      sum.z += value * x.z;
      sum.w += value * x.w;
    }
    __stcs(reinterpret_cast<float4*>(in.c + std::int64_t{__ldg(a.rows + index)} * in.ldc + feature),
           sum);
  }
}

}  // namespace spmmbench::rsh
