#pragma once
// Rows of C that are zero because A has no nonzeros in them. Windows leave them out; further CTAs
// of the same launch write them.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "gpu/element.cuh"
#include "ptx/griddepcontrol.cuh"
#include "window/launch.hpp"
#include "window/stage.cuh"

namespace spmmbench::wcsr {

constexpr int kMostEmptyPerWarp = 32;  // rows: each lane reads the number of one

struct EmptyRows {
  const std::int32_t* rows;  // of C
  std::int32_t count;
  int per_warp;        // rows that a warp writes
  unsigned first_cta;  // blockIdx.x of the first CTA that writes them
};

// Few enough that many warps share the work, enough that a warp has several stores.
inline int empty_rows_per_warp(std::int64_t row_bytes) {
  constexpr std::int64_t kBytesPerWarp = 4096;
  return static_cast<int>(
      std::clamp<std::int64_t>(kBytesPerWarp / row_bytes, 1, kMostEmptyPerWarp));
}

// Width of the grid that the rows take.
inline unsigned ctas_of(const EmptyRows& empty, const window::LaunchShape& launch) {
  const std::int64_t rows =
      std::int64_t{empty.per_warp} * launch.warps * launch.feature_tile_groups;
  return static_cast<unsigned>((empty.count + rows - 1) / rows);
}

// Whole rows with the padding to 16 bytes, in streaming stores, since C is not read. A vector has
// no padding between its values.
template <class C>
__device__ void clear_rows(const window::Arguments& in, const EmptyRows& empty) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const int lane = static_cast<int>(threadIdx.x);
  const std::int64_t cta = std::int64_t{blockIdx.x - empty.first_cta} * gridDim.y + blockIdx.y;
  const std::int64_t warp = (cta * blockDim.z + threadIdx.z) * blockDim.y + threadIdx.y;
  const std::int64_t first = warp * empty.per_warp;
  const int rows = static_cast<int>(min(empty.count - first, std::int64_t{empty.per_warp}));
  const std::int32_t own = lane < rows ? __ldg(empty.rows + first + lane) : 0;
  if (in.n == 1) {
    if (lane < rows) static_cast<C*>(in.c)[own * in.ldc] = from_float<C>(0);
    return;
  }

  // As many lanes as a short row has vectors, rounded up to a power of two, take a row.
  const auto vectors = static_cast<int>((in.n * sizeof(C) + sizeof(uint4) - 1) / sizeof(uint4));
  const int lanes = vectors >= 32 ? 32 : 1 << (32 - __clz(vectors - 1));
  for (int i = 0; i < rows; i += 32 / lanes) {
    const int at = i + lane / lanes;
    const std::int32_t row = __shfl_sync(window::kFullWarp, own, at);
    if (at >= rows) continue;
    auto* const to = reinterpret_cast<uint4*>(static_cast<C*>(in.c) + row * in.ldc);
    for (int v = lane % lanes; v < vectors; v += lanes) __stcs(to + v, make_uint4(0, 0, 0, 0));
  }
}

}  // namespace spmmbench::wcsr
