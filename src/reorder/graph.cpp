#include "reorder/graph.hpp"

#include <fmt/format.h>

#include <limits>

#include "reorder/similarity.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

// Makes the rows of column j, ascending, the neighbours of vertex first + j. `out` has room for
// them, and for one more entry of ptr: while it is filled, the next neighbour of v goes to ptr[v +
// 1], which becomes the end of the list.
void append_transposed(const CsrMatrix& matrix, std::int64_t first, Graph& out) {
  std::int64_t* const ptr = out.ptr.data() + first;
  for (const std::int32_t column : matrix.col_idx) ++ptr[column + 2];
  ptr[1] = ptr[0];
  for (std::int64_t j = 0; j < matrix.cols; ++j) ptr[j + 2] += ptr[j + 1];
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e)
      out.adjacent[ptr[matrix.col_idx[e] + 1]++] = static_cast<std::int32_t>(row);
  out.ptr.pop_back();
}

Graph symmetrize(const CsrMatrix& matrix, const Graph& transposed) {
  Graph out;
  out.ptr.assign(matrix.rows + 1, 0);
  // Visits the union of row v of A and of A^T, ascending, without v.
  const auto visit_union = [&](std::int64_t v, auto&& visit) {
    const auto other = transposed.neighbors(v);
    const std::int32_t *a = matrix.col_idx.data() + matrix.row_ptr[v],
                       *a_end = matrix.col_idx.data() + matrix.row_ptr[v + 1], *b = other.data(),
                       *b_end = b + other.size();
    while (a != a_end || b != b_end) {
      const std::int32_t next = b == b_end || (a != a_end && *a < *b) ? *a : *b;
      if (a != a_end && *a == next) ++a;
      if (b != b_end && *b == next) ++b;
      if (next != v) visit(next);
    }
  };
#pragma omp parallel for schedule(dynamic, 4096)
  for (std::int64_t v = 0; v < matrix.rows; ++v)
    visit_union(v, [&](std::int32_t) { ++out.ptr[v + 1]; });
  for (std::int64_t v = 0; v < matrix.rows; ++v) out.ptr[v + 1] += out.ptr[v];
  out.adjacent.resize(out.ptr.back());
#pragma omp parallel for schedule(dynamic, 4096)
  for (std::int64_t v = 0; v < matrix.rows; ++v) {
    std::int64_t at = out.ptr[v];
    visit_union(v, [&](std::int32_t u) { out.adjacent[at++] = u; });
  }
  return out;
}

}  // namespace

Graph transpose_pattern(const CsrMatrix& matrix) {
  Graph out;
  out.ptr.assign(matrix.cols + 2, 0);
  out.adjacent.resize(matrix.nnz());
  append_transposed(matrix, 0, out);
  return out;
}

Graph bipartite_graph(const CsrMatrix& matrix) {
  if (matrix.rows + matrix.cols > std::numeric_limits<std::int32_t>::max())
    throw Error(fmt::format("a graph of rows and columns: {} vertices, at most 2^31 - 1",
                            matrix.rows + matrix.cols));
  Graph out;
  out.ptr.reserve(matrix.rows + matrix.cols + 2);
  out.ptr = matrix.row_ptr;
  out.ptr.resize(matrix.rows + matrix.cols + 2, 0);
  out.adjacent.resize(2 * matrix.nnz());
  for (std::int64_t e = 0; e < matrix.nnz(); ++e)
    out.adjacent[e] = static_cast<std::int32_t>(matrix.rows + matrix.col_idx[e]);
  append_transposed(matrix, matrix.rows, out);
  return out;
}

Graph graph_of(const CsrMatrix& matrix) {
  return matrix.rows == matrix.cols ? symmetrize(matrix, transpose_pattern(matrix))
                                    : bipartite_graph(matrix);
}

CsrMatrix shared_columns(const CsrMatrix& matrix) {
  std::vector<std::int32_t> place = column_counts(matrix);  // first the counts
  CsrMatrix out;
  std::int64_t nnz = 0;
  for (std::int32_t& column : place) {
    nnz += column > 1 ? column : 0;
    column = column > 1 ? static_cast<std::int32_t>(out.cols++) : -1;
  }
  out.rows = matrix.rows;
  out.row_ptr.reserve(matrix.rows + 1);
  out.col_idx.reserve(nnz);
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e)
      if (place[matrix.col_idx[e]] >= 0) out.col_idx.push_back(place[matrix.col_idx[e]]);
    out.row_ptr.push_back(static_cast<std::int64_t>(out.col_idx.size()));
  }
  return out;
}

}  // namespace spmmbench
