#pragma once
// Matrices with few nonzeros for their sizes: tables per row and column would dwarf the matrix, so
// the rows and columns without entries are left out first.

#include <cstdint>
#include <vector>

#include "spmmbench/matrix.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench {

// The columns that have entries, ascending. O(nnz log nnz), whatever the number of columns.
std::vector<std::int32_t> referenced_columns(const CsrMatrix& matrix);

// Position of every entry's column in `columns`, ascending and complete.
std::vector<std::int32_t> column_positions(const CsrMatrix& matrix,
                                           const std::vector<std::int32_t>& columns);

// More rows and columns than two per nonzero: at least some are empty.
inline bool is_hypersparse(const CsrMatrix& matrix) {
  return matrix.rows + matrix.cols > 2 * matrix.nnz();
}

struct CompactPattern {
  CsrMatrix pattern;               // without values
  std::vector<std::int32_t> rows;  // of the matrix, ascending
};

// Without empty rows and columns, square if and only if the matrix is. Of a square matrix, what is
// kept of the rows and of the columns is the same, so that a vertex stays row and column.
CompactPattern compact_pattern(const CsrMatrix& matrix);

// `rows`, ascending, in the order that `order` gives them; then all other rows.
Permutation expand_order(const Permutation& order, const std::vector<std::int32_t>& rows,
                         std::int64_t all_rows);

// compute(matrix), but of a hypersparse one only the order of what is not empty.
template <class Compute>
Permutation order_compactly(const CsrMatrix& matrix, Compute&& compute) {
  if (!is_hypersparse(matrix)) return compute(matrix);
  const CompactPattern compact = compact_pattern(matrix);
  return expand_order(compute(compact.pattern), compact.rows, matrix.rows);
}

}  // namespace spmmbench
