#include "core/two_of_four.hpp"

namespace spmmbench {
namespace {

bool row_is_two_of_four(const CsrMatrix& matrix, std::int64_t row) {
  std::int32_t group = -1;
  int nonzeros = 0;  // in that group
  for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e) {
    if (matrix.values[e] == 0) continue;
    nonzeros = matrix.col_idx[e] / 4 == group ? nonzeros + 1 : 1;
    group = matrix.col_idx[e] / 4;
    if (nonzeros > 2) return false;
  }
  return true;
}

}  // namespace

std::optional<std::int64_t> first_row_beyond_two_of_four(const CsrMatrix& matrix) {
  std::int64_t first = matrix.rows;
#pragma omp parallel for schedule(static) reduction(min : first)
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    if (row < first && !row_is_two_of_four(matrix, row)) first = row;
  if (first == matrix.rows) return std::nullopt;
  return first;
}

}  // namespace spmmbench
