#include "reorder/compact.hpp"

#include <algorithm>

namespace spmmbench {

std::vector<std::int32_t> referenced_columns(const CsrMatrix& matrix) {
  std::vector<std::int32_t> columns = matrix.col_idx;
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  columns.shrink_to_fit();
  return columns;
}

std::vector<std::int32_t> column_positions(const CsrMatrix& matrix,
                                           const std::vector<std::int32_t>& columns) {
  std::vector<std::int32_t> out(matrix.nnz());
#pragma omp parallel for schedule(static)
  for (std::int64_t e = 0; e < matrix.nnz(); ++e)
    out[e] = static_cast<std::int32_t>(
        std::lower_bound(columns.begin(), columns.end(), matrix.col_idx[e]) - columns.begin());
  return out;
}

CompactPattern compact_pattern(const CsrMatrix& matrix) {
  CompactPattern out;
  std::vector<std::int32_t> columns = referenced_columns(matrix);
  for (std::int64_t row = 0, next = 0; row < matrix.rows; ++row) {
    const bool is_column = matrix.rows == matrix.cols &&
                           next < static_cast<std::int64_t>(columns.size()) && columns[next] == row;
    next += is_column;
    if (is_column || matrix.row_length(row) > 0) out.rows.push_back(static_cast<std::int32_t>(row));
  }
  if (matrix.rows == matrix.cols) columns = out.rows;
  out.pattern.rows = static_cast<std::int64_t>(out.rows.size());
  out.pattern.cols = static_cast<std::int64_t>(columns.size());
  // An empty column is kept where a rectangular matrix would become square.
  out.pattern.cols += matrix.rows != matrix.cols && out.pattern.rows == out.pattern.cols;
  out.pattern.row_ptr.reserve(out.rows.size() + 1);
  for (const std::int32_t row : out.rows) out.pattern.row_ptr.push_back(matrix.row_ptr[row + 1]);
  out.pattern.col_idx = column_positions(matrix, columns);
  return out;
}

Permutation expand_order(const Permutation& order, const std::vector<std::int32_t>& rows,
                         std::int64_t all_rows) {
  Permutation out;
  out.reserve(all_rows);
  for (const std::int32_t i : order) out.push_back(rows[i]);
  auto next = rows.begin();
  for (std::int32_t row = 0; row < all_rows; ++row)
    if (next != rows.end() && *next == row) {
      ++next;
    } else {
      out.push_back(row);
    }
  return out;
}

}  // namespace spmmbench
