#include "core/two_of_four.hpp"

namespace spmmbench {
namespace {

// Columns ascend, so three entries of a group are neighbours. This loop reads no values and becomes
// vector instructions.
bool has_three_in_a_group(const std::int32_t* cols, std::int64_t count) {
  std::uint32_t three = 0;
  for (std::int64_t i = 0; i + 2 < count; ++i) three |= cols[i] / 4 == cols[i + 2] / 4 ? 1U : 0U;
  return three != 0;
}

bool row_is_two_of_four(const CsrMatrix& matrix, std::int64_t row) {
  if (!has_three_in_a_group(matrix.col_idx.data() + matrix.row_ptr[row], matrix.row_length(row)))
    return true;
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
