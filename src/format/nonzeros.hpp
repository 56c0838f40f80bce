#pragma once
// What a format unpacks to: the nonzeros of A in any order, and the matrix that they make.

#include <cstdint>
#include <vector>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

struct Nonzero {
  std::int32_t row, col;
  float value;
};

// No two may have the same place.
CsrMatrix csr_of(std::int64_t rows, std::int64_t cols, std::vector<Nonzero> nonzeros);

}  // namespace spmmbench
