#pragma once
// Residual rows on the CUDA cores: some lanes per row and feature tile, four features per lane, no
// staging. Rows without entries are written as zeros here.

#include <cuda_runtime.h>

#include <type_traits>

#include "common/dense_io.cuh"
#include "gpu/element.cuh"
#include "rsh/residual.hpp"
#include "window/stage.cuh"

namespace spmmbench::rsh {

template <class Input>
constexpr bool kIsTf32 = window::kInputBytes<Input> == 4;

// Four features as they lie in B.
template <class Input>
using Four =
    std::conditional_t<kIsTf32<Input>, float4,
                       std::conditional_t<window::kInputBytes<Input> == 1, std::uint32_t, uint2>>;

template <class Input>
__device__ inline float4 to_float4(const Four<Input>& raw) {
  if constexpr (kIsTf32<Input>) {
    return raw;
  } else {
    const Input* const x = reinterpret_cast<const Input*>(&raw);
    return make_float4(to_float(x[0]), to_float(x[1]), to_float(x[2]), to_float(x[3]));
  }
}

template <class Input>
__device__ inline float load_factor(const void* values, std::int64_t index) {
  if constexpr (kIsTf32<Input>) return __ldg(static_cast<const float*>(values) + index);
  else return to_float(static_cast<const Input*>(values)[index]);
}

// Lanes that take a feature tile of a row of B, and rows of A that a warp takes.
template <class Input, int kRowBytes>
constexpr int kResidualLanes = kRowBytes / window::kInputBytes<Input> / 4;
constexpr int kRowsTogether = 4, kEntriesTogether = 2;
template <class Input, int kRowBytes>
constexpr int kResidualRowsPerWarp = 32 / kResidualLanes<Input, kRowBytes>* kRowsTogether;

// The rows that a group of lanes takes together, from place `first` of the list on.
struct RowsTogether {
  std::int32_t row[kRowsTogether];    // of C; -1: none
  std::int32_t entry[kRowsTogether];  // the first of each
  int length[kRowsTogether], longest = 0;

  __device__ RowsTogether(const Residual& a, std::int64_t first) {
    int same = 0;  // length of the row before
#pragma unroll
    for (int i = 0; i < kRowsTogether; ++i) {
      const std::int64_t index = first + i;
      const bool inside = index < a.count;
      row[i] = inside ? __ldg(a.rows + index) : -1;
      if (inside)
        while (index >= a.first[same + 1]) ++same;
      length[i] = inside ? same : 0;
      entry[i] = a.entry[same] + static_cast<std::int32_t>(index - a.first[same]) * same;
      longest = max(longest, length[i]);
    }
  }
};

// `cta`: among those of residual rows, each kResidualRowsPerWarp * team rows.
template <class Input, class C, int kRowBytes>
__device__ inline void multiply_residual(const window::Arguments& in, const Residual& a,
                                         std::int64_t cta) {
  constexpr int kLanes = kResidualLanes<Input, kRowBytes>;
  const std::int64_t feature_tile = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
  const std::int64_t feature = (feature_tile * kLanes + threadIdx.x % kLanes) * 4;
  if (feature >= in.n) return;
  const char* const b = static_cast<const char*>(in.b) + feature * window::kInputBytes<Input>;

  // Neighbours in the list have the same length nearly always, so that the loads of all rows are in
  // flight together.
  const std::int64_t group =
      (cta * blockDim.z + threadIdx.z) * (32 / kLanes) + threadIdx.x / kLanes;
  const RowsTogether rows(a, group * kRowsTogether);
  float4 sum[kRowsTogether] = {};
#pragma unroll 1
  for (int j = 0; j < rows.longest; j += kEntriesTogether) {
    std::int32_t col[kRowsTogether][kEntriesTogether];
    float value[kRowsTogether][kEntriesTogether];
    Four<Input> raw[kRowsTogether][kEntriesTogether];
#pragma unroll
    for (int i = 0; i < kRowsTogether; ++i)
#pragma unroll
      for (int e = 0; e < kEntriesTogether; ++e) {
        const bool inside = j + e < rows.length[i];
        col[i][e] = inside ? __ldg(a.cols + rows.entry[i] + j + e) : -1;
        value[i][e] = inside ? load_factor<Input>(a.values, rows.entry[i] + j + e) : 0;
      }
#pragma unroll
    for (int i = 0; i < kRowsTogether; ++i)
#pragma unroll
      for (int e = 0; e < kEntriesTogether; ++e)
        raw[i][e] =
            col[i][e] < 0
                ? Four<Input>{}
                : __ldca(reinterpret_cast<const Four<Input>*>(
                      b + std::uint64_t{static_cast<std::uint32_t>(col[i][e])} * in.b_row_bytes));
#pragma unroll
    for (int i = 0; i < kRowsTogether; ++i)
#pragma unroll
      for (int e = 0; e < kEntriesTogether; ++e) {
        const float4 x = to_float4<Input>(raw[i][e]);
        sum[i].x += value[i][e] * x.x;
        sum[i].y += value[i][e] * x.y;
        sum[i].z += value[i][e] * x.z;
        sum[i].w += value[i][e] * x.w;
      }
  }
#pragma unroll
  for (int i = 0; i < kRowsTogether; ++i) {
    if constexpr (window::kInputBytes<Input> == 1)
      sum[i] = make_float4(sum[i].x * in.scale, sum[i].y * in.scale, sum[i].z * in.scale,
                           sum[i].w * in.scale);
    if (rows.row[i] >= 0)
      store_four(static_cast<C*>(in.c) + rows.row[i] * in.ldc + feature, sum[i]);
  }
}

}  // namespace spmmbench::rsh
