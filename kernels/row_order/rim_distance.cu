// A breadth-first search in one launch, whose CTAs wait for each other after each distance. At each
// all rows that have none yet look for a column of the distance before. Which thread is first makes
// no difference: all that write a place write the same.

#include "row_order/rim_distance.hpp"

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cub/device/device_radix_sort.cuh>

#include "common/dependent_launch.hpp"
#include "common/memory_layout.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/told_to_host.hpp"
#include "row_order/grid_barrier.cuh"
#include "row_order/level.cuh"

namespace spmmbench {
namespace {

using rim::kClusterRows, rim::kMostDistances, rim::Reached;

constexpr int kSearchThreads = 512, kSearchCtasPerSm = 3;
constexpr int kSearches = 2;  // from the middle, and from the rim
constexpr int kSortThreads = 256;

// A second search finds numbers of the first in its tables: its own begin at `base`, and what is
// less has not been reached.
struct Search {
  DeviceCsr a;
  std::int32_t *of_row, *of_column;  // distances
  unsigned* rows_at;                 // each distance of both searches; 0 at first
  unsigned* rim;                     // the first row of the last distance; largest at first
  unsigned* arrived;                 // see GridBarrier
  Reached* told;                     // what the second search has reached
};

// By a CTA.
__device__ void begin_at(const Search& s, std::int64_t row, std::int32_t base) {
  if (threadIdx.x == 0) s.of_row[row] = base;
  for (std::int64_t e = s.a.row_ptr[row] + threadIdx.x; e < s.a.row_ptr[row + 1];
       e += kSearchThreads)
    s.of_column[s.a.col_idx[e]] = base;
}

// Rows that are reached after `distance`. Returns how many this thread counts.
template <int kLanes>
__device__ unsigned reach_next(const Search& s, std::int32_t distance, std::int32_t base) {
  namespace cg = cooperative_groups;
  const auto lanes = cg::tiled_partition<kLanes>(cg::this_thread_block());
  const auto lane = static_cast<std::int64_t>(lanes.thread_rank());
  const std::int64_t step = std::int64_t{gridDim.x} * kSearchThreads / kLanes;
  unsigned count = 0;
  for (std::int64_t row = match::thread_index() / kLanes; row < s.a.rows; row += step) {
    if (__ldcg(s.of_row + row) >= base) continue;
    const std::int64_t begin = s.a.row_ptr[row], end = s.a.row_ptr[row + 1];
    bool is_near = false;
    for (std::int64_t first = begin; first < end && !is_near; first += kLanes) {
      const std::int64_t e = first + lane;
      is_near = lanes.any(e < end && __ldcg(s.of_column + s.a.col_idx[e]) == distance);
    }
    if (!is_near) continue;
    for (std::int64_t e = begin + lane; e < end; e += kLanes) {
      std::int32_t* const column = s.of_column + s.a.col_idx[e];
      if (__ldcg(column) < base) *column = distance + 1;
    }
    if (lane != 0) continue;
    s.of_row[row] = distance + 1;
    ++count;
  }
  return count;
}

// Returns when all CTAs have come to its end.
template <int kLanes>
__device__ Reached search_from(const Search& s, std::int64_t row, std::int32_t base,
                               GridBarrier& barrier) {
  if (blockIdx.x == 0) begin_at(s, row, base);
  barrier.sync();
  Reached reached = {1, 1};
  while (reached.distances < kMostDistances) {
    unsigned* const rows = s.rows_at + base + reached.distances;
    const unsigned count =
        __reduce_add_sync(match::kWarp, reach_next<kLanes>(s, base + reached.distances - 1, base));
    if (threadIdx.x % 32 == 0 && count > 0) atomicAdd(rows, count);
    barrier.sync();
    const unsigned found = __ldcg(rows);
    if (found == 0) break;
    reached.rows += found;
    ++reached.distances;
  }
  return reached;
}

template <int kLanes>
__global__ void __launch_bounds__(kSearchThreads, kSearchCtasPerSm) find_distances(Search s) {
  GridBarrier barrier(s.arrived);
  const auto rows = static_cast<std::int32_t>(s.a.rows);
  const std::int64_t middle = match::lower_bound(s.a.row_ptr, rows + 1, s.a.nnz / 2 + 1) - 1;
  const Reached from_middle = search_from<kLanes>(s, middle, 0, barrier);
  for (std::int64_t row = match::thread_index(); row < rows;
       row += std::int64_t{gridDim.x} * kSearchThreads)
    if (__ldcg(s.of_row + row) == from_middle.distances - 1)
      atomicMin(s.rim, static_cast<unsigned>(row));
  barrier.sync();
  const Reached from_rim = search_from<kLanes>(s, __ldcg(s.rim), kMostDistances, barrier);
  if (match::thread_index() == 0) *s.told = from_rim;
}

// The row at a place of an order; null: natural.
__device__ std::int32_t row_at(const std::int32_t* order, std::int64_t place) {
  return order == nullptr ? static_cast<std::int32_t>(place) : order[place];
}

// The least distance of the rows of each cluster, and its number.
__global__ void __launch_bounds__(kSortThreads)
    make_distance_keys(const std::int32_t* of_row, const std::int32_t* order, std::int32_t clusters,
                       std::uint32_t* keys, std::int32_t* numbers) {
  const auto i = static_cast<std::int32_t>(match::thread_index());
  if (i >= clusters) return;
  std::int32_t least = kMostDistances;
  for (int row = 0; row < kClusterRows; ++row) {
    const std::int32_t own =
        of_row[row_at(order, std::int64_t{i} * kClusterRows + row)] - kMostDistances;
    if (own >= 0) least = min(least, own);
  }
  keys[i] = static_cast<std::uint32_t>(least);
  numbers[i] = i;
}

__global__ void __launch_bounds__(kSortThreads)
    move_clusters(const std::int32_t* from, const std::int32_t* sorted, std::int64_t rows,
                  std::int32_t clusters, std::int32_t* to) {
  const std::int64_t place = match::thread_index(), cluster = place / kClusterRows;
  if (place >= rows) return;
  const std::int64_t other =
      cluster < clusters ? std::int64_t{sorted[cluster]} * kClusterRows + place % kClusterRows
                         : place;
  to[place] = row_at(from, other);
}

unsigned ctas_of_sort(std::int64_t threads) {
  return static_cast<unsigned>((threads + kSortThreads - 1) / kSortThreads);
}

cudaStream_t sort_stream(const Device& device) {
  return static_cast<cudaStream_t>(device.stream().handle);
}

void launch_search(const Search& search, Device& device) {
  constexpr int kLanesOfShort = 4, kLanesOfLong = 16;
  constexpr std::int64_t kShortRow = 12;  // nonzeros, in the mean
  const bool is_short = search.a.nnz <= kShortRow * search.a.rows;
  const int lanes = is_short ? kLanesOfShort : kLanesOfLong;
  const std::int64_t ctas =
      std::min<std::int64_t>((search.a.rows * lanes + kSearchThreads - 1) / kSearchThreads,
                             std::int64_t{kSearchCtasPerSm} * device.info().sm_count);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  launch_with({&attribute, 1},
              is_short ? find_distances<kLanesOfShort> : find_distances<kLanesOfLong>,
              dim3(static_cast<unsigned>(ctas)), dim3(kSearchThreads), 0, device.stream(), search);
}

}  // namespace

Buffer sort_by_distance(const DeviceCsr& a, const Buffer& order, Device& device) {
  if (a.nnz == 0) return {};
  constexpr int kKeyBits = std::bit_width(static_cast<unsigned>(kMostDistances));
  const auto clusters = static_cast<std::int32_t>(a.rows / kClusterRows);
  std::size_t sort_bytes = 0;
  const auto sort = [&](void* memory, const std::uint32_t* keys, std::uint32_t* sorted_keys,
                        const std::int32_t* numbers, std::int32_t* sorted) {
    SPMMBENCH_CUDA(cub::DeviceRadixSort::SortPairs(memory, sort_bytes, keys, sorted_keys, numbers,
                                                   sorted, clusters, 0, kKeyBits,
                                                   sort_stream(device)));
  };
  sort(nullptr, nullptr, nullptr, nullptr, nullptr);
  MemoryLayout layout;
  const auto add = [&](std::int64_t words) { return layout.add(words * sizeof(std::int32_t)); };
  // Those before the counts are all ones at first, those from there to the keys zero.
  const std::size_t rows_at = add(a.rows), columns_at = add(a.cols), rim_at = add(1),
                    counts_at = add(kSearches * kMostDistances), arrived_at = add(1),
                    keys_at = add(clusters), sorted_keys_at = add(clusters),
                    numbers_at = add(clusters), sorted_at = add(clusters),
                    memory_at = layout.add(std::max<std::size_t>(sort_bytes, 1));
  const Buffer scratch = device.allocate(layout.bytes());
  device.fill_bytes(scratch.data(), 0xFF, counts_at);
  device.fill_bytes(array_at<void>(scratch, counts_at), 0, keys_at - counts_at);
  const ToldToHost told(device);
  auto* const of_row = array_at<std::int32_t>(scratch, rows_at);
  launch_search({a, of_row, array_at<std::int32_t>(scratch, columns_at),
                 array_at<unsigned>(scratch, counts_at), array_at<unsigned>(scratch, rim_at),
                 array_at<unsigned>(scratch, arrived_at), told.as<Reached>()},
                device);
  device.synchronize();
  if (!told.read<Reached>().sorts(a.rows)) return {};
  auto* const keys = array_at<std::uint32_t>(scratch, keys_at);
  auto *const numbers = array_at<std::int32_t>(scratch, numbers_at), *const sorted =
                                                                         array_at<std::int32_t>(
                                                                             scratch, sorted_at);
  const auto* const from = order.as<std::int32_t>();
  make_distance_keys<<<ctas_of_sort(clusters), kSortThreads, 0, sort_stream(device)>>>(
      of_row, from, clusters, keys, numbers);
  SPMMBENCH_CUDA_LAUNCHED();
  sort(array_at<void>(scratch, memory_at), keys, array_at<std::uint32_t>(scratch, sorted_keys_at),
       numbers, sorted);
  Buffer out = device.allocate(a.rows * sizeof(std::int32_t));
  move_clusters<<<ctas_of_sort(a.rows), kSortThreads, 0, sort_stream(device)>>>(
      from, sorted, a.rows, clusters, out.as<std::int32_t>());
  SPMMBENCH_CUDA_LAUNCHED();
  device.synchronize();
  return out;
}

}  // namespace spmmbench
