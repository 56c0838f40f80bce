#pragma once
// A level of the row order `match` (match_order.cu), and how the first one is made.

#include <climits>
#include <cstdint>

#include "spmmbench/device_csr.hpp"

namespace spmmbench::match {

constexpr int kThreads = 256;
constexpr unsigned kWarp = 0xFFFFFFFFU;
constexpr std::int32_t kNone = -1;

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

// A level as the kernels read it.
struct Level {
  const std::int32_t* ptr;       // [clusters + 1], into columns
  const std::int32_t* columns;   // of each cluster, ascending
  const std::int32_t* list_ptr;  // [columns of A + 1], into lists
  const std::int32_t* lists;     // of each column the clusters that have it, ascending
  std::int32_t clusters;

  __device__ std::int32_t length(std::int32_t i) const { return ptr[i + 1] - ptr[i]; }
};

__global__ void mark_filled(DeviceCsr a, std::int32_t* is_filled) {
  const std::int64_t row = thread_index();
  if (row <= a.rows) is_filled[row] = row < a.rows && a.row_ptr[row + 1] > a.row_ptr[row] ? 1 : 0;
}

// `before`: filled rows before each. Empty rows go to the end of the order.
__global__ void number_rows(DeviceCsr a, const std::int32_t* before, std::int32_t* ptr,
                            std::int32_t* rows, std::int32_t* order) {
  const std::int64_t row = thread_index();
  if (row > a.rows) return;
  const std::int32_t own = before[row], filled = before[a.rows];
  if (row == a.rows || a.row_ptr[row + 1] > a.row_ptr[row])
    ptr[own] = static_cast<std::int32_t>(a.row_ptr[row]);
  if (row == a.rows) return;
  if (a.row_ptr[row + 1] > a.row_ptr[row]) rows[own] = static_cast<std::int32_t>(row);
  else order[filled + (row - own)] = static_cast<std::int32_t>(row);
}

// The cluster of every entry. A warp takes kEntries at a time, which few clusters have.
constexpr int kEntries = 256;
__global__ void number_entries(const std::int32_t* ptr, std::int32_t clusters, std::int32_t entries,
                               std::int32_t* owner) {
  const std::int64_t first = thread_index() / 32 * kEntries;
  const int lane = threadIdx.x % 32;
  if (first >= entries) return;
  const auto begin = static_cast<std::int32_t>(first);
  const std::int32_t end = min(begin + kEntries, entries);
  const auto cluster_of = [&](std::int32_t entry, std::int32_t low, std::int32_t high) {
    return low + lower_bound(ptr + low + 1, high - low, entry + 1);
  };
  const std::int32_t low = cluster_of(begin, 0, clusters - 1);
  const std::int32_t high = cluster_of(end - 1, low, clusters - 1);
  for (std::int32_t entry = begin + lane; entry < end; entry += 32)
    owner[entry] = cluster_of(entry, low, high);
}

// Where each number begins among ascending ones.
__global__ void find_starts(const std::int32_t* numbers, std::int32_t count, std::int64_t most,
                            std::int32_t* ptr) {
  const std::int64_t number = thread_index();
  if (number <= most) ptr[number] = lower_bound(numbers, count, static_cast<std::int32_t>(number));
}

}  // namespace spmmbench::match
