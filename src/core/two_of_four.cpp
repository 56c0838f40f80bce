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
  return most_in_a_group(matrix, matrix.row_ptr[row], matrix.row_ptr[row + 1], 3) <= 2;
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
