// A breadth-first search in one launch, whose CTAs wait for each other after each distance. Each
// goes on from the columns that the distance before has brought, in the lists of their rows. Where
// these are much of A, or one is long, all rows that have no distance look for such a column
// instead. Which thread is first makes no difference: a row has the same distance, whoever finds
// it.

#include "row_order/rim_distance.hpp"

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "common/dependent_launch.hpp"
#include "common/memory_layout.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/row_of_entry.cuh"
#include "gpu/told_to_host.hpp"
#include "row_order/grid_barrier.cuh"
#include "row_order/level.cuh"

namespace spmmbench {
namespace {

namespace cg = cooperative_groups;
using rim::kClusterRows, rim::kMostDistances, rim::Reached;

constexpr int kSearchThreads = 512, kSearchCtasPerSm = 3;
constexpr int kSearches = 2;  // from the middle, and from the rim
constexpr int kSortThreads = 256;

// The rows of each column, in any order.
struct ColumnLists {
  std::int32_t* count;  // of each column, and 0 after the last; 0 at first, and at the end
  std::int32_t* begin;  // cols + 1
  std::int32_t* rows;
};

__global__ void __launch_bounds__(kSortThreads) size_lists(const DeviceCsr a, std::int32_t* count) {
  const std::int64_t entry = match::thread_index();
  if (entry < a.nnz) atomicAdd(count + a.col_idx[entry], 1);
}

__global__ void __launch_bounds__(kSortThreads) fill_lists(const DeviceCsr a, ColumnLists lists) {
  const std::int64_t entry = match::thread_index();
  if (entry >= a.nnz) return;
  const std::int32_t column = a.col_idx[entry];
  const std::int32_t left = atomicSub(lists.count + column, 1);
  lists.rows[lists.begin[column] + left - 1] =
      static_cast<std::int32_t>(row_of_entry(a.row_ptr, a.rows, entry));
}

// What a distance has brought. 0 at first.
struct alignas(16) Front {
  unsigned rows, columns;
  unsigned entries, long_lists;  // of these columns
};

// A second search finds numbers of the first in its tables: its own begin at `base`, and what is
// less has not been reached.
struct Search {
  DeviceCsr a;
  ColumnLists lists;
  std::int32_t *of_row, *of_column;  // distances
  std::int32_t* columns;             // as they are found
  Front* fronts;                     // of each distance of both searches
  unsigned* rim;                     // the first row of the last distance; largest at first
  unsigned* arrived;                 // see GridBarrier
  Reached* told;                     // what the second search has reached
};

// The lanes that take a row or a list together.
template <int kLanes>
using Lanes = cg::thread_block_tile<kLanes, cg::thread_block>;

// What a thread does at a distance.
template <int kLanes>
class Step {
 public:
  // `queue`: where the columns that are found go.
  __device__ Step(const Search& search, std::int32_t distance, std::int32_t base,
                  std::int32_t* queue)
      : s_(search),
        lanes_(cg::tiled_partition<kLanes>(cg::this_thread_block())),
        distance_(distance),
        base_(base),
        queue_(queue),
        front_(search.fronts + distance) {}

  // Rows in the lists of `count` columns.
  __device__ void reach_by_columns(const std::int32_t* columns, unsigned count) {
    for (std::int64_t i = group(); i < count; i += groups()) {
      const std::int32_t column = __ldcg(columns + i);
      const std::int32_t end = s_.lists.begin[column + 1];
      for (std::int32_t first = s_.lists.begin[column]; first < end; first += kLanes) {
        const std::int32_t at = first + static_cast<std::int32_t>(lanes_.thread_rank());
        const std::int32_t row = at < end ? s_.lists.rows[at] : 0;
        unsigned found = lanes_.ballot(at < end && take(s_.of_row + row));
        for (; found != 0; found &= found - 1) add_row(lanes_.shfl(row, __ffs(found) - 1));
      }
    }
  }
  // Rows that have a column of the distance before.
  __device__ void reach_by_rows() {
    for (std::int64_t row = group(); row < s_.a.rows; row += groups()) {
      if (__ldcg(s_.of_row + row) >= base_) continue;
      const std::int64_t begin = s_.a.row_ptr[row], end = s_.a.row_ptr[row + 1];
      bool is_near = false;
      for (std::int64_t first = begin; first < end && !is_near; first += kLanes) {
        const std::int64_t e = first + lanes_.thread_rank();
        is_near = lanes_.any(e < end && __ldcg(s_.of_column + s_.a.col_idx[e]) == distance_ - 1);
      }
      if (!is_near) continue;
      if (lanes_.thread_rank() == 0) s_.of_row[row] = distance_;
      add_row(row);
    }
  }
  // A row that was reached.
  __device__ void add_row(std::int64_t row) {
    rows_ += lanes_.thread_rank() == 0 ? 1 : 0;
    for (std::int64_t e = s_.a.row_ptr[row] + lanes_.thread_rank(); e < s_.a.row_ptr[row + 1];
         e += kLanes)
      if (const std::int32_t column = s_.a.col_idx[e]; take(s_.of_column + column)) add(column);
  }
  // Adds what the threads of a warp have found.
  __device__ void tell() const {
    add_of_warp(&front_->rows, rows_);
    add_of_warp(&front_->entries, entries_);
    add_of_warp(&front_->long_lists, long_lists_);
  }

 private:
  __device__ std::int64_t group() const { return match::thread_index() / kLanes; }
  __device__ std::int64_t groups() const {
    return std::int64_t{gridDim.x} * kSearchThreads / kLanes;
  }
  static __device__ void add_of_warp(unsigned* sum, unsigned value) {
    const unsigned all = __reduce_add_sync(match::kWarp, value);
    if (threadIdx.x % 32 == 0 && all > 0) atomicAdd(sum, all);
  }
  // Whether this thread is the first to reach a row or a column.
  __device__ bool take(std::int32_t* place) const {
    const std::int32_t old = __ldcg(place);
    return old < base_ && atomicCAS(place, old, distance_) == old;
  }
  __device__ void add(std::int32_t column) {
    // It would keep its lanes for 32 loads while others wait at the barrier. Not fitted.
    constexpr std::int32_t kLongList = 32 * kLanes;
    const auto found = cg::coalesced_threads();
    unsigned place = 0;
    if (found.thread_rank() == 0) place = atomicAdd(&front_->columns, found.size());
    queue_[found.shfl(place, 0) + found.thread_rank()] = column;
    const std::int32_t length = s_.lists.begin[column + 1] - s_.lists.begin[column];
    entries_ += static_cast<unsigned>(length);
    long_lists_ += length > kLongList ? 1 : 0;
  }

  const Search& s_;
  Lanes<kLanes> lanes_;
  std::int32_t distance_, base_;
  std::int32_t* queue_;
  Front* front_;
  unsigned rows_ = 0, entries_ = 0, long_lists_ = 0;
};

__device__ Front front_at(const Search& s, std::int32_t distance) {
  const uint4 words = __ldcg(reinterpret_cast<const uint4*>(s.fronts + distance));
  return {words.x, words.y, words.z, words.w};
}

// Returns when all CTAs have come to its end.
template <int kLanes>
__device__ Reached search_from(const Search& s, std::int64_t row, std::int32_t base,
                               GridBarrier& barrier) {
  // Lists are read where they have less than a quarter of the entries of A. They are read whole,
  // while a row is read until one of its columns is near. The part was not fitted.
  constexpr std::int64_t kPart = 4;
  if (match::thread_index() < 32) {
    Step<kLanes> first(s, base, base, s.columns);
    if (match::thread_index() == 0) s.of_row[row] = base;
    if (match::thread_index() < kLanes) first.add_row(row);
    __syncwarp();
    first.tell();
  }
  barrier.sync();
  Reached reached = {1, 1};
  for (std::int32_t* columns = s.columns; reached.distances < kMostDistances;) {
    const std::int32_t distance = base + reached.distances;
    const Front before = front_at(s, distance - 1);
    Step<kLanes> step(s, distance, base, columns + before.columns);
    if (before.long_lists == 0 && before.entries * kPart < s.a.nnz)
      step.reach_by_columns(columns, before.columns);
    else step.reach_by_rows();
    __syncwarp();
    step.tell();
    barrier.sync();
    const unsigned found = front_at(s, distance).rows;
    if (found == 0) break;
    columns += before.columns;
    reached.rows += found;
    ++reached.distances;
  }
  return reached;
}

template <int kLanes>
__global__ void __launch_bounds__(kSearchThreads, kSearchCtasPerSm)
    find_distances(const __grid_constant__ Search s) {
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

// Needs what `lists` has at first.
void fill_columns(const DeviceCsr& a, const ColumnLists& lists, void* memory, std::size_t bytes,
                  cudaStream_t stream) {
  size_lists<<<ctas_of_sort(a.nnz), kSortThreads, 0, stream>>>(a, lists.count);
  SPMMBENCH_CUDA_LAUNCHED();
  SPMMBENCH_CUDA(
      cub::DeviceScan::ExclusiveSum(memory, bytes, lists.count, lists.begin, a.cols + 1, stream));
  fill_lists<<<ctas_of_sort(a.nnz), kSortThreads, 0, stream>>>(a, lists);
  SPMMBENCH_CUDA_LAUNCHED();
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
  std::size_t scan_bytes = 0;
  SPMMBENCH_CUDA(cub::DeviceScan::ExclusiveSum(nullptr, scan_bytes,
                                               static_cast<std::int32_t*>(nullptr),
                                               static_cast<std::int32_t*>(nullptr), a.cols + 1));
  MemoryLayout layout;
  const auto add = [&](std::int64_t words) { return layout.add(words * sizeof(std::int32_t)); };
  // Those before the fronts are all ones at first, those from there to the lists zero.
  const std::size_t rows_at = add(a.rows), columns_at = add(a.cols), rim_at = add(1),
                    fronts_at = layout.add(kSearches * kMostDistances * sizeof(Front)),
                    arrived_at = add(1), counts_at = add(a.cols + 1), begin_at = add(a.cols + 1),
                    lists_at = add(a.nnz), found_at = add(a.cols), keys_at = add(clusters),
                    sorted_keys_at = add(clusters), numbers_at = add(clusters),
                    sorted_at = add(clusters),
                    memory_at = layout.add(std::max({sort_bytes, scan_bytes, std::size_t{1}}));
  const Buffer scratch = device.allocate(layout.bytes());
  device.fill_bytes(scratch.data(), 0xFF, fronts_at);
  device.fill_bytes(array_at<void>(scratch, fronts_at), 0, begin_at - fronts_at);
  const ToldToHost told(device);
  const auto words_at = [&](std::size_t at) { return array_at<std::int32_t>(scratch, at); };
  std::int32_t* const of_row = words_at(rows_at);
  const ColumnLists lists{words_at(counts_at), words_at(begin_at), words_at(lists_at)};
  fill_columns(a, lists, array_at<void>(scratch, memory_at), scan_bytes, sort_stream(device));
  launch_search({a, lists, of_row, words_at(columns_at), words_at(found_at),
                 array_at<Front>(scratch, fronts_at), array_at<unsigned>(scratch, rim_at),
                 array_at<unsigned>(scratch, arrived_at), told.as<Reached>()},
                device);
  device.synchronize();
  if (!told.read<Reached>().sorts(a.rows)) return {};
  auto* const keys = array_at<std::uint32_t>(scratch, keys_at);
  std::int32_t *const numbers = words_at(numbers_at), *const sorted = words_at(sorted_at);
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
