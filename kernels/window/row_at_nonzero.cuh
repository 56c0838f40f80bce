#pragma once

#include <cstdint>

#include "format/wcsr_estimate.hpp"
#include "spmmbench/device_csr.hpp"

namespace spmmbench {

// Of rows_at_nonzeros (format/wcsr_estimate.hpp), one.
__device__ inline std::int64_t row_at_nonzero(const DeviceCsr& a, int sample) {
  const auto entry =
      static_cast<std::int64_t>((static_cast<double>(sample) + 0.5) /
                                static_cast<double>(kSampledRows) * static_cast<double>(a.nnz));
  std::int64_t low = 0, high = a.rows;  // row_ptr[low] <= entry < row_ptr[high]
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (a.row_ptr[middle] <= entry ? low : high) = middle;
  }
  return low;
}

}  // namespace spmmbench
