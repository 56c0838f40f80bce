#pragma once

#include <cstdint>

#include "format/wcsr_estimate.hpp"
#include "spmmbench/device_csr.hpp"

namespace spmmbench {

// The nonzero whose row is one of rows_at_nonzeros (format/wcsr_estimate.hpp).
__device__ inline std::int64_t sampled_nonzero(const DeviceCsr& a, int sample) {
  return static_cast<std::int64_t>((static_cast<double>(sample) + 0.5) /
                                   static_cast<double>(kSampledRows) * static_cast<double>(a.nnz));
}

// That row, for kLanes neighbours of a warp, which look for it together; `lane` is the number among
// these.
template <int kLanes>
__device__ std::int64_t row_at_nonzero(const DeviceCsr& a, int sample, int lane) {
  static_assert(kLanes < 32);
  const unsigned all = (1U << kLanes) - 1, shift = threadIdx.x % 32 / kLanes * kLanes;
  const std::int64_t entry = sampled_nonzero(a, sample);
  std::int64_t low = 0, count = a.rows;  // row_ptr[low] <= entry < row_ptr[low + count]
  while (count > 1) {
    const std::int64_t step = (count + kLanes - 1) / kLanes;
    const std::int64_t own = (std::int64_t{lane} + 1) * step;
    const bool is_before = own < count && a.row_ptr[low + own] <= entry;
    const int steps = __popc(__ballot_sync(all << shift, is_before) & all << shift);
    low += steps * step;
    count = min(step, count - steps * step);
  }
  return low;
}

// The same for all kThreads threads of a CTA, which look for it together.
template <int kThreads>
__device__ std::int64_t shared_row_at_nonzero(const DeviceCsr& a, int sample) {
  const std::int64_t entry = sampled_nonzero(a, sample);
  std::int64_t low = 0, count = a.rows;  // row_ptr[low] <= entry < row_ptr[low + count]
  while (count > 1) {
    const std::int64_t step = (count + kThreads - 1) / kThreads;
    const std::int64_t own = (std::int64_t{threadIdx.x} + 1) * step;
    const int steps = __syncthreads_count(own < count && a.row_ptr[low + own] <= entry);
    low += steps * step;
    count = min(step, count - steps * step);
  }
  return low;
}

}  // namespace spmmbench
