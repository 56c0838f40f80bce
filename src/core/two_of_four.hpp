#pragma once
// 2:4 structured sparsity: of every four neighbours in a row (columns 4 g to 4 g + 3) at most two
// are not zero.

#include <cstdint>
#include <optional>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// The first row that breaks the pattern; none when the matrix is in it. Entries that are zero do
// not count. Each thread stops at its first such row, so that a matrix far from 2:4 costs little.
std::optional<std::int64_t> first_row_beyond_two_of_four(const CsrMatrix& matrix);

}  // namespace spmmbench
