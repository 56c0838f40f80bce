#pragma once
// Makes matrices with few nonzeros for their sizes smaller. Tables with an entry per row or column
// would be far larger than the matrix, so rows and columns without entries are left out first.

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

// More than `most` rows and columns for each nonzero. With two, some are empty.
inline bool is_hypersparse(const CsrMatrix& matrix, std::int64_t most = 2) {
  return matrix.rows + matrix.cols > most * matrix.nnz();
}

struct CompactPattern {
  CsrMatrix pattern;               // without values
  std::vector<std::int32_t> rows;  // of the matrix, ascending
};

// The matrix without its empty rows and columns. The result is square if and only if the matrix is.
// A square matrix keeps row i if it keeps column i, so that both stay the same vertex of a graph.
CompactPattern compact_pattern(const CsrMatrix& matrix);

// `rows`, which are ascending, in the order that `order` gives; then all other rows.
Permutation expand_order(const Permutation& order, const std::vector<std::int32_t>& rows,
                         std::int64_t all_rows);

// compute(matrix). For a hypersparse matrix it orders the nonempty rows; the empty ones follow.
template <class Compute>
Permutation order_compactly(const CsrMatrix& matrix, Compute&& compute, std::int64_t most = 2) {
  if (!is_hypersparse(matrix, most)) return compute(matrix);
  const CompactPattern compact = compact_pattern(matrix);
  return expand_order(compute(compact.pattern), compact.rows, matrix.rows);
}

}  // namespace spmmbench
