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

  __device__ std::int32_t length(std::int32_t i) const { return columns_of[i].length; }
};

// Of a cluster: its partner, and whom it names while it has none.
struct alignas(8) State {
  std::int32_t mate = kNone, named = kNone;
};

__global__ void mark_filled(DeviceCsr a, std::int32_t* is_filled) {
  const std::int64_t row = thread_index();
  if (row <= a.rows) is_filled[row] = row < a.rows && a.row_ptr[row + 1] > a.row_ptr[row] ? 1 : 0;
}

// `before`: filled rows before each. Empty rows go to the end of the order.
__global__ void number_rows(DeviceCsr a, const std::int32_t* before, Span* columns_of,
                            State* states, std::int32_t* rows, std::int32_t* order) {
  const std::int64_t row = thread_index();
  if (row >= a.rows) return;
  const std::int32_t own = before[row], filled = before[a.rows];
  const auto begin = static_cast<std::int32_t>(a.row_ptr[row]);
  const auto length = static_cast<std::int32_t>(a.row_ptr[row + 1]) - begin;
  if (length == 0) {
    order[filled + (row - own)] = static_cast<std::int32_t>(row);
    return;
  }
  columns_of[own] = {begin, length};
  states[own] = {};
  rows[own] = static_cast<std::int32_t>(row);
}

// The cluster of every entry. A warp takes kEntries at a time, which few rows have. `before`:
// filled rows before each.
constexpr int kEntries = 64;
__global__ void number_entries(DeviceCsr a, const std::int32_t* before, std::int32_t* owner) {
  const std::int64_t begin = thread_index() / 32 * kEntries;
  const int lane = threadIdx.x % 32;
  if (begin >= a.nnz) return;
  const std::int64_t end = min(begin + kEntries, a.nnz);
  const auto row_of = [&](std::int64_t entry, std::int32_t low, std::int32_t high) {
    return low + lower_bound(a.row_ptr + low + 1, high - low, entry + 1);
  };
  const std::int32_t low = row_of(begin, 0, static_cast<std::int32_t>(a.rows) - 1);
  const std::int32_t high = row_of(end - 1, low, static_cast<std::int32_t>(a.rows) - 1);
  for (std::int64_t entry = begin + lane; entry < end; entry += 32)
    owner[entry] = before[row_of(entry, low, high)];
}

// Where each number below `most` is among ascending ones; nowhere if it is there more than
// kMostOfColumn times.
__global__ void find_spans(const std::int32_t* numbers, std::int32_t count, std::int64_t most,
                           Span* spans) {
  const std::int64_t number = thread_index();
  if (number >= most) return;
  const auto own = static_cast<std::int32_t>(number);
  const std::int32_t begin = lower_bound(numbers, count, own);
  std::int32_t most_length = 8;  // a guess: searching all that follow takes longer
  while (most_length < count - begin && numbers[begin + most_length] <= own) most_length *= 2;
  const std::int32_t length =
      lower_bound(numbers + begin, min(most_length, count - begin), own + 1);
  spans[number] = {begin, length <= kMostOfColumn ? length : 0};
}

}  // namespace spmmbench::match
