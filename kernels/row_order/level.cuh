#pragma once
// A level of the row order `match` (match_order.cu), and how the first one is made.

#include <climits>
#include <cstdint>

#include "reorder/match.hpp"
#include "spmmbench/device_csr.hpp"

namespace spmmbench::match {

constexpr int kThreads = 256;
constexpr unsigned kWarp = 0xFFFFFFFFU;
constexpr std::int32_t kNone = -1;
constexpr int kCounters = 3;  // two of Partners, and Uniting::columns_end: 0 at each level

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

// A level as the kernels read it.
struct Level {
  const Span* columns_of;       // [clusters], in columns
  const std::int32_t* columns;  // of each cluster, ascending
  const Span* list_of;          // [columns of A], in lists
  const std::int32_t* lists;    // of each column the clusters that have it, ascending
  std::int32_t clusters;
  int pass;

  __device__ std::int32_t length(std::int32_t i) const { return columns_of[i].length; }
};

// Of a cluster: its partner, and whom it names while it has none.
struct alignas(8) State {
  std::int32_t mate = kNone, named = kNone;
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

__global__ void mark_filled(DeviceCsr a, std::int32_t* is_filled) {
  const std::int64_t row = thread_index();
  if (row <= a.rows) is_filled[row] = row < a.rows && a.row_ptr[row + 1] > a.row_ptr[row] ? 1 : 0;
}

// `before`: filled rows before each. Empty rows go to the end of the order.
__global__ void number_rows(DeviceCsr a, const std::int32_t* before, Span* columns_of,
                            State* states, std::int32_t* rows, std::int32_t* order, Most* most) {
  const std::int64_t row = thread_index();
  const bool is_row = row < a.rows;
  const std::int64_t begin = is_row ? a.row_ptr[row] : 0, end = is_row ? a.row_ptr[row + 1] : 0;
  const auto length = static_cast<std::int32_t>(end - begin);
  raise(&most->columns, length);
  if (!is_row) return;
  const std::int32_t own = before[row], filled = before[a.rows];
  if (row == 0) most->filled = filled;
  if (length == 0) {
    order[filled + (row - own)] = static_cast<std::int32_t>(row);
    return;
  }
  columns_of[own] = {static_cast<std::int32_t>(begin), length};
  states[own] = {};
  rows[own] = static_cast<std::int32_t>(row);
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

// The cluster of every entry. A warp takes kEntries at a time, which few rows have. `before`:
// filled rows before each.
constexpr int kEntries = 128;
__global__ void number_entries(DeviceCsr a, const std::int32_t* before, std::int32_t* owner) {
  const std::int64_t begin = thread_index() / 32 * kEntries;
  const int lane = threadIdx.x % 32;
  if (begin >= a.nnz) return;
  const std::int64_t end = min(begin + kEntries, a.nnz);
  const auto rows = static_cast<std::int32_t>(a.rows);
  const std::int32_t low = lower_bound_by_warp(a.row_ptr + 1, rows, begin + 1);
  const std::int32_t most = min(rows - low, kEntries * 2);  // a guess, with a few empty ones
  std::int32_t count = lower_bound_by_warp(a.row_ptr + 1 + low, most, end);
  if (count == most) count = lower_bound_by_warp(a.row_ptr + 1 + low, rows - low, end);
  for (std::int64_t entry = begin + lane; entry < end; entry += 32)
    owner[entry] = before[low + lower_bound(a.row_ptr + 1 + low, count, entry + 1)];
}

// Where each number is among ascending ones, `spans` being 0 before; nowhere if it is there more
// than kMostOfColumn times. `longest`: see Most::list.
__global__ void find_spans(const std::int32_t* numbers, std::int32_t count, Span* spans,
                           std::int32_t* longest) {
  const std::int64_t index = thread_index();
  std::int32_t length = 0;
  if (index < count) {
    const auto begin = static_cast<std::int32_t>(index);
    const std::int32_t own = numbers[begin];
    if (begin == 0 || numbers[begin - 1] != own) {
      const std::int32_t most = min(count - begin, kMostOfColumn + 1);
      std::int32_t end = 8;  // a guess: searching all that follow takes longer
      while (end < most && numbers[begin + end] == own) end *= 2;
      length = lower_bound(numbers + begin, min(end, most), own + 1);
      if (length > kMostOfColumn) length = 0;
      spans[own] = {begin, length};
    }
  }
  raise(longest, length);
}

}  // namespace spmmbench::match
