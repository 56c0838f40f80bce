#include "cli/structure.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/row_lengths.hpp"
#include "reorder/graph.hpp"
#include "timing/quantiles.hpp"

namespace spmmbench {

Structure structure_of(const CsrMatrix& matrix) {
  Structure out{.rows = row_lengths(matrix)};
  std::vector<double> lengths(matrix.rows);
  double distances = 0;
  std::vector<bool> referenced(matrix.cols, false);
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    lengths[row] = static_cast<double>(matrix.row_length(row));
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e) {
      const std::int64_t distance = std::abs(row - matrix.col_idx[e]);
      out.bandwidth = std::max(out.bandwidth, distance);
      distances += static_cast<double>(distance);
      referenced[matrix.col_idx[e]] = true;
    }
  }
  out.referenced_cols = std::count(referenced.begin(), referenced.end(), true);
  if (matrix.nnz() > 0) out.mean_distance = distances / static_cast<double>(matrix.nnz());
  if (matrix.rows > 0) {
    std::sort(lengths.begin(), lengths.end());
    out.row_min = lengths.front();
    out.row_q1 = quantile(lengths, 0.25);
    out.row_median = quantile(lengths, 0.5);
    out.row_q3 = quantile(lengths, 0.75);
    out.row_p99 = quantile(lengths, 0.99);
  }
  if (matrix.rows == matrix.cols) {
    const Graph transposed = transpose_pattern(matrix);
    out.symmetric_pattern =
        transposed.ptr == matrix.row_ptr && transposed.adjacent == matrix.col_idx;
  }
  return out;
}

}  // namespace spmmbench
