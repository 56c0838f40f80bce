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

// That row.
__device__ inline std::int64_t row_at_nonzero(const DeviceCsr& a, int sample) {
  const std::int64_t entry = sampled_nonzero(a, sample);
  std::int64_t low = 0, high = a.rows;  // row_ptr[low] <= entry < row_ptr[high]
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (a.row_ptr[middle] <= entry ? low : high) = middle;
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
