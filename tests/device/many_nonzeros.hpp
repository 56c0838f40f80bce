#pragma once
// A matrix with more nonzeros than 32 bits count, made where it is multiplied: neither the host nor
// a reference could hold it. All its values and those of B are small whole numbers, so that sums
// are exact, and the host knows each element of the product.

#include <cstdint>

#include "spmmbench/device.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench::test {

struct ManyNonzeros {
  std::int64_t rows, cols, per_row;

  SPMMBENCH_HOST_DEVICE std::int64_t nnz() const { return rows * per_row; }
  // Of entry j of a row. Columns ascend: one of every cols / per_row.
  SPMMBENCH_HOST_DEVICE std::int32_t column(std::int64_t row, std::int64_t j) const {
    const std::int64_t step = cols / per_row;
    const auto within = static_cast<std::int64_t>(hash_position(1, row, j) >> 40) % step;
    return static_cast<std::int32_t>(j * step + within);
  }
  SPMMBENCH_HOST_DEVICE int value(std::int64_t row, std::int64_t j) const {
    return static_cast<int>(hash_position(2, row, j) >> 40) % 5 - 2;
  }
  static int b(std::int64_t row, std::int64_t col) {
    return static_cast<int>((row * 7 + col) % 5) - 2;
  }
};

// Writes CSR with values of fp16 to arrays in device memory.
void fill_csr(const ManyNonzeros& a, std::int64_t* row_ptr, std::int32_t* col_idx, void* values,
              Stream stream);

}  // namespace spmmbench::test
