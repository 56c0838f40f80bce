#pragma once

#include <cstdint>

namespace spmmbench {

// The row of an entry of CSR, by its offsets.
__device__ inline std::int32_t row_of_entry(const std::int64_t* row_ptr, std::int64_t rows,
                                            std::int64_t entry) {
  std::int64_t low = 0, high = rows;  // row_ptr[low] <= entry < row_ptr[high]
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (row_ptr[middle] <= entry ? low : high) = middle;
  }
  return static_cast<std::int32_t>(low);
}

}  // namespace spmmbench
