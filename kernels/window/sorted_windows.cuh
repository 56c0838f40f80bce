#pragma once
// Windows that are to be cut, and the places of many long ones, by CUB.

#include <cuda_runtime.h>

#include <thrust/iterator/counting_iterator.h>
#include <algorithm>
#include <cstdint>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include "common/memory_layout.hpp"
#include "format/tile_work.hpp"
#include "gpu/cuda_check.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench::window {

struct Windows {
  const std::int32_t* ptr;
  std::int64_t count;
  TileCut cut;

  __device__ std::int32_t tiles(std::int64_t window) const { return ptr[window + 1] - ptr[window]; }
  __device__ bool is_long(std::int64_t window) const { return tiles(window) > cut.whole_tiles; }
};

// Long windows in falling length, and the CTAs before each, where CUB has sorted them.
struct LongPlaces {
  std::int32_t *windows = nullptr, *first_cta = nullptr;
};

inline unsigned ctas_for(std::int64_t threads, int per_cta) {
  return static_cast<unsigned>(std::max<std::int64_t>(1, (threads + per_cta - 1) / per_cta));
}

constexpr int kThreadsOfSort = 256;

struct IsLong {
  Windows in;
  __device__ bool operator()(std::int32_t window) const { return in.is_long(window); }
};

static __global__ void __launch_bounds__(kThreadsOfSort)
    measure_windows(Windows in, const std::int32_t* windows, std::int64_t count,
                    std::int32_t* tiles) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreadsOfSort + threadIdx.x;
  if (i < count) tiles[i] = in.tiles(windows[i]);
}

constexpr int kSumThreads = 1024;

// One CTA. CTAs before each long window, which come in falling length.
static __global__ void __launch_bounds__(kSumThreads)
    place_windows(TileCut cut, const std::int32_t* tiles, std::int64_t count,
                  std::int32_t* first_cta) {
  using Scan = cub::BlockScan<std::int32_t, kSumThreads>;
  __shared__ typename Scan::TempStorage temporary;
  std::int32_t all = 0;
  for (std::int64_t first = 0; first < count; first += kSumThreads) {
    const std::int64_t own = first + threadIdx.x;
    const auto ctas = own < count ? static_cast<std::int32_t>(cut.ctas_of(tiles[own])) : 0;
    std::int32_t before = 0, of_these = 0;
    Scan(temporary).ExclusiveSum(ctas, before, of_these);
    if (own < count) first_cta[own] = all + before;
    all += of_these;
    __syncthreads();  // the scan's memory is used again
  }
}

// The places of many long windows, by CUB. Returns memory that is in use until the work is written.
[[nodiscard]] inline Buffer sort_windows(const Windows& in, std::int64_t count, LongPlaces& out,
                                         Stream on, Device& device) {
  const auto stream = static_cast<cudaStream_t>(on.handle);
  std::size_t select_bytes = 0, sort_bytes = 0;
  const auto select = [&](void* temporary, std::int32_t* to, std::int32_t* counted) {
    SPMMBENCH_CUDA(cub::DeviceSelect::If(temporary, select_bytes,
                                         thrust::counting_iterator<std::int32_t>(0), to, counted,
                                         static_cast<std::int32_t>(in.count), IsLong{in}, stream));
  };
  const auto sort = [&](void* temporary, const std::int32_t* keys, std::int32_t* sorted_keys,
                        const std::int32_t* windows) {
    SPMMBENCH_CUDA(cub::DeviceRadixSort::SortPairsDescending(
        temporary, sort_bytes, keys, sorted_keys, windows, out.windows,
        static_cast<std::int32_t>(count), 0, 31, stream));
  };
  select(nullptr, nullptr, nullptr);
  sort(nullptr, nullptr, nullptr, nullptr);
  MemoryLayout layout;
  const std::size_t each = count * sizeof(std::int32_t);
  const std::size_t found_at = layout.add(each), tiles_at = layout.add(each),
                    sorted_at = layout.add(each), windows_at = layout.add(each),
                    first_at = layout.add(each), counted_at = layout.add(sizeof(std::int32_t)),
                    temporary_at = layout.add(std::max({select_bytes, sort_bytes, std::size_t{1}}));
  Buffer memory = device.allocate(layout.bytes());
  out = {array_at<std::int32_t>(memory, windows_at), array_at<std::int32_t>(memory, first_at)};
  auto* const found = array_at<std::int32_t>(memory, found_at);
  auto* const tiles = array_at<std::int32_t>(memory, tiles_at);
  auto* const sorted = array_at<std::int32_t>(memory, sorted_at);
  auto* const temporary = array_at<void>(memory, temporary_at);
  select(temporary, found, array_at<std::int32_t>(memory, counted_at));
  measure_windows<<<ctas_for(count, kThreadsOfSort), kThreadsOfSort, 0, stream>>>(in, found, count,
                                                                                  tiles);
  SPMMBENCH_CUDA_LAUNCHED();
  sort(temporary, tiles, sorted, found);
  place_windows<<<1, kSumThreads, 0, stream>>>(in.cut, sorted, count, out.first_cta);
  SPMMBENCH_CUDA_LAUNCHED();
  return memory;
}

}  // namespace spmmbench::window
