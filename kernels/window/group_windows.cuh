#pragma once
// What a CTA counts of a sample of a matrix: of a window of a group of rows, and of empty rows.

#include <cstdint>

#include "core/row_lengths.hpp"
#include "spmmbench/device_csr.hpp"
#include "window/device_window.cuh"
#include "window/survey_counts.hpp"

namespace spmmbench::window {

struct WindowCount {
  std::int32_t distinct = 0, entries = 0;  // columns; of what is counted
};

// Window `part` of a group, or what is left of it by take(a, window), which says whether there is
// anything to count. The launch has wcsr::bytes_of_marks<kThreads> of shared memory. For thread 0,
// by all threads.
template <int kThreads, class Take>
__device__ WindowCount count_window(const DeviceCsr& matrix, const std::int32_t* row_of,
                                    std::int64_t group, int part, const Take& take) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ wcsr::Window window;
  __shared__ wcsr::ScatteredColumns<kThreads> scattered;
  const int height_index = part < first_of_height(1) ? 0 : part < first_of_height(2) ? 1 : 2;
  const int height = wcsr_height(height_index);
  const std::int64_t first = group * kGroupRows + (part - first_of_height(height_index)) * height;
  if (first >= matrix.rows) return {};
  const wcsr::Csr a{matrix.row_ptr, matrix.col_idx, row_of, matrix.rows, height};
  wcsr::read_window(a, first, window);
  if (!take(a, window)) return {};
  return {wcsr::count_distinct<kThreads>(a, window, shared, scattered), window.count()};
}

struct EmptyRows {
  int empty, sampled;
};

// Counts in the sample of share_of_empty_rows. All threads of a CTA call it.
template <int kThreads>
__device__ EmptyRows count_empty_rows(const DeviceCsr& a) {
  constexpr int kRounds = kSampledPlaces * kRowsOfPlace / kThreads;
  static_assert(kRounds * kThreads == kSampledPlaces * kRowsOfPlace);
  const std::int64_t places = min(kSampledPlaces, (a.rows + kRowsOfPlace - 1) / kRowsOfPlace);
  bool empty[kRounds], sampled[kRounds];
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
    const std::int64_t number = i * kThreads + threadIdx.x, place = number / kRowsOfPlace;
    const std::int64_t row = max(kRowsOfPlace, a.rows / places) * place + number % kRowsOfPlace;
    sampled[i] = place < places && row < a.rows;
    empty[i] = sampled[i] && a.row_ptr[row] == a.row_ptr[row + 1];
  }
  EmptyRows out{};
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
    out.empty += __syncthreads_count(empty[i]);
    out.sampled += __syncthreads_count(sampled[i]);
  }
  return out;
}

}  // namespace spmmbench::window
