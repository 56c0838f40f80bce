#pragma once
// From the distinct columns of all windows to the tiles before each, and what the host is told of
// them.

#include <cstdint>
#include <cub/block/block_scan.cuh>

#include "gpu/signal.cuh"
#include "window/device_build.hpp"
#include "window/device_window.cuh"
#include "window/long_windows.cuh"

namespace spmmbench::wcsr {

constexpr int kSumThreads = 1024;

// Over all windows.
struct Sums {
  std::int64_t gathered;        // distinct columns
  std::int32_t tiles, longest;  // in all, and of the longest window
  unsigned long_windows;        // parts that are listed
};

// What the host is told: the window pointers where they are few.
struct ToldSizes {
  Sums sums;
  // If the device has chosen the windows: the rows of one (else 0), and whether all but long
  // windows lie in the memory that was taken for the format.
  std::int32_t rows;
  bool is_placed;
  std::uint32_t signal;  // once all is there
  alignas(16) std::int32_t window_ptr[DeviceWcsr::kMostOnHost / 4 * 4 + 4];
};

// From the distinct columns of each window, in place: the first tile of each, and the end, repeated
// until an int4 is full. By a CTA; `window_ptr` has room for these. 31 bits hold the tiles of 2^31
// - 1 nonzeros: at most one in 16 and one per window. Ends with a barrier.
__device__ inline Sums sum_tiles(std::int32_t* window_ptr, std::int64_t windows, int tile_columns,
                                 ToldSizes* told) {
  using TileScan = cub::BlockScan<std::int32_t, kSumThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ typename TileScan::TempStorage scan;
  __shared__ unsigned columns_of_all, longest_of_all;
  if (threadIdx.x == 0) columns_of_all = longest_of_all = 0;
  constexpr int kOfThread = 8, kOfVector = 4;
  std::int32_t before = 0;
  unsigned columns = 0, longest = 0;
  for (std::int64_t from = 0; from <= windows; from += kOfThread * kSumThreads) {
    const std::int64_t own = from + kOfThread * threadIdx.x;
    std::int32_t counted[kOfThread], tiles[kOfThread];
#pragma unroll
    for (int i = 0; i < kOfThread; i += kOfVector) {
      const std::int64_t at = own + i;
      const auto count = [&](int j) { return at + j < windows ? window_ptr[at + j] : 0; };
      const int4 vector = at + kOfVector <= windows
                              ? *reinterpret_cast<const int4*>(window_ptr + at)
                              : make_int4(count(0), count(1), count(2), count(3));
      counted[i] = vector.x;
      counted[i + 1] = vector.y;
      counted[i + 2] = vector.z;
      counted[i + 3] = vector.w;
    }
#pragma unroll
    for (int i = 0; i < kOfThread; ++i) {
      columns += counted[i];
      longest = max(longest, static_cast<unsigned>(counted[i]));
      tiles[i] = own + i < windows ? max(1, (counted[i] + tile_columns - 1) / tile_columns) : 0;
    }
    std::int32_t all = 0;
    TileScan(scan).ExclusiveSum(tiles, tiles, all);
#pragma unroll
    for (int i = 0; i < kOfThread; i += kOfVector) {
      if (own + i > windows) continue;
      const int4 vector = make_int4(before + tiles[i], before + tiles[i + 1], before + tiles[i + 2],
                                    before + tiles[i + 3]);
      *reinterpret_cast<int4*>(window_ptr + own + i) = vector;
      if (windows <= DeviceWcsr::kMostOnHost)
        *reinterpret_cast<int4*>(told->window_ptr + own + i) = vector;
    }
    before += all;
    __syncthreads();  // the scan's memory is used again
  }
  columns = __reduce_add_sync(kAllLanes, columns);
  longest = __reduce_max_sync(kAllLanes, longest);
  if (threadIdx.x % kWarpLanes == 0) {
    atomicAdd(&columns_of_all, columns);
    atomicMax(&longest_of_all, longest);
  }
  __syncthreads();
  // A window without columns has a tile, too.
  const std::int64_t of_longest =
      windows > 0
          ? max(std::int64_t{1}, (std::int64_t{longest_of_all} + tile_columns - 1) / tile_columns)
          : 0;
  return {columns_of_all, before, static_cast<std::int32_t>(of_longest), 0};
}

// What kernels go by that are enqueued before the host has chosen.
struct Chosen {
  std::int32_t* rows;    // of a window; 0: the host has to build
  LongWindows longs;     // behind their counter is that of windows that are skipped
  std::int32_t* counts;  // of each window; become its first tile
  const std::int64_t* row_ptr;
  std::int64_t places;
  int tile_columns;
  std::int64_t room;  // tiles of windows of 8 rows for which there is memory
  ToldSizes* told;

  __device__ std::int64_t windows(int height) const { return (places + height - 1) / height; }

  // All windows were counted, but for long ones unless `with_long`. By a CTA of kSumThreads.
  __device__ void take_counts(bool with_long) const {
    const int height = *rows;
    const unsigned listed = *longs.count;
    const bool is_counted = height > 0 && (with_long || listed == 0);
    Sums sums{};
    if (is_counted) sums = sum_tiles(counts, windows(height), tile_columns, told);
    else __syncthreads();  // all have read `rows`
    if (threadIdx.x != 0) return;
    sums.long_windows = listed;
    const bool fits = is_counted && std::int64_t{sums.tiles} * height <= room * wcsr_height(0);
    if (!fits) *rows = 0;
    told->sums = sums;
    told->rows = height;
    told->is_placed = fits;
    give_signal({&told->signal});
  }
};

}  // namespace spmmbench::wcsr
