#pragma once
// 2:4 structured sparsity: of every four neighbours in a row (columns 4 g to 4 g + 3) at most two
// are not zero.

#include <cstdint>
#include <optional>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// The most nonzeros that a group of four columns has among the entries [begin, end) of a row. Looks
// no further once it has found `enough`.
inline int most_in_a_group(const CsrMatrix& matrix, std::int64_t begin, std::int64_t end,
                           int enough) {
  std::int32_t group = -1;
  int most = 0, count = 0;  // nonzeros in that group
  for (std::int64_t e = begin; e < end && most < enough; ++e) {
    if (matrix.values[e] == 0) continue;
    count = matrix.col_idx[e] / 4 == group ? count + 1 : 1;
    group = matrix.col_idx[e] / 4;
    if (count > most) most = count;
  }
  return most;
}

// The first row that breaks the pattern; none when the matrix is in it. Entries that are zero do
// not count. Each thread stops at its first such row, so that a matrix far from 2:4 costs little.
std::optional<std::int64_t> first_row_beyond_two_of_four(const CsrMatrix& matrix);

}  // namespace spmmbench
