#include "reorder/first_columns.hpp"

#include <algorithm>

namespace spmmbench {

std::vector<std::int32_t> rows_with_columns(const CsrMatrix& matrix) {
  std::vector<std::int32_t> rows;
  for (std::int32_t row = 0; row < matrix.rows; ++row)
    if (matrix.row_length(row) > 0) rows.push_back(row);
  return rows;
}

std::vector<std::int32_t> rows_by_first_columns(const CsrMatrix& matrix) {
  const RowKeys keys(matrix.cols);
  std::vector<std::int32_t> rows = rows_with_columns(matrix);
  std::vector<std::uint32_t> key_of(matrix.rows);
  for (const std::int32_t row : rows)
    key_of[row] = keys.of_row(matrix.col_idx.data() + matrix.row_ptr[row], matrix.row_length(row));
  std::ranges::stable_sort(rows, {}, [&](std::int32_t row) { return key_of[row]; });
  return rows;
}

}  // namespace spmmbench
