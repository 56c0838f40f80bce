#pragma once
// A level of the row order `match` (match_order.cu), and how the first one is made.

#include <climits>
#include <cstdint>

#include "ptx/griddepcontrol.cuh"
#include "reorder/first_columns.hpp"
#include "reorder/match.hpp"
#include "spmmbench/device_csr.hpp"

namespace spmmbench::match {

constexpr int kThreads = 256;
constexpr unsigned kWarp = 0xFFFFFFFFU;
constexpr std::int32_t kNone = -1;
constexpr int kCounters = 3;  // of Partners: 0 where a search begins

inline __device__ std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// The first of `count` ascending numbers that is not below `value`.
template <class T>
inline __device__ std::int32_t lower_bound(const T* numbers, std::int32_t count, T value) {
  std::int32_t low = 0;
  while (count > 0) {
    const std::int32_t half = count / 2;
    if (numbers[low + half] < value) {
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return low;
}

// Part of an array.
struct alignas(8) Span {
  std::int32_t begin, length;
};

// The first level as the kernels read it: its clusters are rows.
struct Level {
  const Span* columns_of;       // [clusters], in columns
  const std::int32_t* columns;  // of each row, ascending
  const Span* list_of;          // [columns of A], in lists
  const std::int32_t* lists;    // of each column the rows that have it, ascending where long
  std::int32_t clusters;

  __device__ std::int32_t length(std::int32_t i) const { return columns_of[i].length; }
};

// Raises `most` to the largest value of a warp. All its lanes call it.
inline __device__ void raise(std::int32_t* most, std::int32_t value) {
  const std::int32_t of_warp = __reduce_max_sync(kWarp, value);
  if (threadIdx.x % 32 == 0 && of_warp > *static_cast<volatile std::int32_t*>(most))
    atomicMax(most, of_warp);
}

// What the host has to know of the first level, 0 before.
struct Most {
  std::int32_t filled;   // rows
  std::int32_t columns;  // of a row
  std::int32_t list;     // of a column
};

// The key of each row, and its number.
__global__ void __launch_bounds__(kThreads)
    make_keys(DeviceCsr a, RowKeys keys, std::uint32_t* key_of, std::int32_t* rows) {
  const std::int64_t row = thread_index();
  if (row >= a.rows) return;
  const std::int64_t begin = a.row_ptr[row];
  key_of[row] = keys.of_row(a.col_idx + begin, a.row_ptr[row + 1] - begin);
  rows[row] = static_cast<std::int32_t>(row);
}

// How many entries of its column come before each, in any order, and how many each column has,
// which is 0 before.
__global__ void count_columns(DeviceCsr a, std::int32_t* counts, std::int32_t* before) {
  ptx::griddepcontrol_launch_dependents();
  const std::int64_t entry = thread_index();
  if (entry < a.nnz) before[entry] = atomicAdd(counts + a.col_idx[entry], 1);
}

// What is summed: 1 for each row that is filled, and 0 after the last, then the entries of each
// column.
struct Size {
  const std::int64_t* row_ptr;
  std::int64_t rows;
  const std::int32_t* counts;  // of columns
  __device__ unsigned operator()(std::int64_t i) const {
    if (i > rows) return static_cast<unsigned>(counts[i - rows - 1]);
    return i < rows && row_ptr[i + 1] > row_ptr[i] ? 1 : 0;
  }
};

// The place of each row among those that are sorted.
__global__ void __launch_bounds__(kThreads)
    invert_order(const std::int32_t* rows, std::int64_t count, std::int32_t* place) {
  const std::int64_t i = thread_index();
  if (i < count) place[rows[i]] = static_cast<std::int32_t>(i);
}

// The first level as it is made.
struct FirstLevel {
  DeviceCsr a;
  const std::int32_t* counts;  // of columns
  const std::int32_t* before;  // see count_columns
  const unsigned* sums;        // of Size, before each
  const std::int32_t* place;   // of each row where they are sorted, else null
  Span* columns_of;
  std::int32_t* rows;   // of each cluster
  std::int32_t* order;  // empty rows go to its end
  Span* list_of;        // none of a column that more than kMostOfColumn rows have
  std::int32_t* lists;  // not ascending
  Most* most;
  unsigned* arrivals;  // 0, before and after
  Most* told;          // for the host

  // The cluster of a row; of an empty row its place behind all clusters.
  __device__ std::int32_t number(std::int64_t row, bool is_empty) const {
    if (place != nullptr) return place[row];
    const unsigned before = sums[row];
    return static_cast<std::int32_t>(is_empty ? sums[a.rows] + (row - before) : before);
  }
  __device__ Span list(std::int64_t column) const {
    const std::int32_t length = counts[column];
    const unsigned begin = sums[a.rows + 1 + column] - sums[a.rows];
    return {static_cast<std::int32_t>(begin), length > kMostOfColumn ? 0 : length};
  }
};

inline __device__ void place_row(const FirstLevel& all, std::int64_t row) {
  const bool is_row = row < all.a.rows;
  const std::int64_t begin = is_row ? all.a.row_ptr[row] : 0;
  const auto length = is_row ? static_cast<std::int32_t>(all.a.row_ptr[row + 1] - begin) : 0;
  raise(&all.most->columns, length);
  if (!is_row) return;
  if (row == 0) all.most->filled = static_cast<std::int32_t>(all.sums[all.a.rows]);
  const std::int32_t own = all.number(row, length == 0);
  if (length == 0) {
    all.order[own] = static_cast<std::int32_t>(row);
    return;
  }
  all.columns_of[own] = {static_cast<std::int32_t>(begin), length};
  all.rows[own] = static_cast<std::int32_t>(row);
}

inline __device__ void place_column(const FirstLevel& all, std::int64_t column) {
  const Span list = column < all.a.cols ? all.list(column) : Span{0, 0};
  raise(&all.most->list, list.length);
  if (column < all.a.cols) all.list_of[column] = list;
}

// As lower_bound, by a warp: 32 numbers at a time.
template <class T>
inline __device__ std::int32_t lower_bound_by_warp(const T* numbers, std::int32_t count, T value) {
  const int lane = threadIdx.x % 32;
  std::int32_t low = 0;
  while (count > 32) {
    const std::int32_t part = count / 32;
    const int below = __popc(__ballot_sync(kWarp, numbers[low + (lane + 1) * part - 1] < value));
    low += below * part;
    count = below == 32 ? count - 32 * part : part - 1;
  }
  return low + __popc(__ballot_sync(kWarp, lane < count && numbers[low + lane] < value));
}

// A warp takes kEntries at a time, which few rows have.
constexpr int kEntries = 128;
inline __device__ void place_entries(const FirstLevel& all, std::int64_t begin) {
  const int lane = threadIdx.x % 32;
  if (begin >= all.a.nnz) return;
  const std::int64_t end = min(begin + kEntries, all.a.nnz);
  const std::int64_t* const ends = all.a.row_ptr + 1;
  const auto rows = static_cast<std::int32_t>(all.a.rows);
  const std::int32_t low = lower_bound_by_warp(ends, rows, begin + 1);
  const std::int32_t likely = min(rows - low, kEntries * 2);  // with a few empty ones
  std::int32_t count = lower_bound_by_warp(ends + low, likely, end);
  if (count == likely) count = lower_bound_by_warp(ends + low, rows - low, end);
  for (std::int64_t entry = begin + lane; entry < end; entry += 32) {
    const Span list = all.list(all.a.col_idx[entry]);
    if (list.length > 0)
      all.lists[list.begin + all.before[entry]] =
          all.number(low + lower_bound(ends + low, count, entry + 1), false);
  }
}

// A thread for each row, for each column, and a warp for every kEntries entries. The last CTA tells
// the host.
__global__ void place_level(const __grid_constant__ FirstLevel all) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const std::int64_t thread = thread_index();
  place_row(all, thread);
  place_column(all, thread);
  place_entries(all, thread / 32 * kEntries);
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicAdd(all.arrivals, 1U) + 1 < gridDim.x) return;
  *all.arrivals = 0;
  const volatile Most& most = *all.most;
  *all.told = {most.filled, most.columns, most.list};
}

}  // namespace spmmbench::match
