#include "cli/structure.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/row_lengths.hpp"
#include "reorder/graph.hpp"

namespace spmmbench {
namespace {

// The lengths of rows in ascending order, as numbers of rows of each length.
class SortedLengths {
 public:
  SortedLengths(const CsrMatrix& matrix, std::int64_t longest) : rows_of_(longest + 1, 0) {
    for (std::int64_t row = 0; row < matrix.rows; ++row) ++rows_of_[matrix.row_length(row)];
  }
  // As quantile() of timing/quantiles.hpp: linear between neighbours.
  double quantile(double q, std::int64_t rows) const {
    const double at = q * static_cast<double>(rows - 1);
    const auto below = static_cast<std::int64_t>(at);
    const double least = length_at(below);
    return least +
           (at - static_cast<double>(below)) * (length_at(std::min(below + 1, rows - 1)) - least);
  }

 private:
  double length_at(std::int64_t place) const {
    std::int64_t length = 0;
    while (place >= rows_of_[length]) place -= rows_of_[length++];
    return static_cast<double>(length);
  }
  std::vector<std::int64_t> rows_of_;
};

}  // namespace

Structure structure_of(const CsrMatrix& matrix) {
  Structure out{.rows = row_lengths(matrix)};
  double distances = 0;
  std::vector<bool> referenced(matrix.cols, false);
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e) {
      const std::int64_t distance = std::abs(row - matrix.col_idx[e]);
      out.bandwidth = std::max(out.bandwidth, distance);
      distances += static_cast<double>(distance);
      out.referenced_cols += referenced[matrix.col_idx[e]] ? 0 : 1;
      referenced[matrix.col_idx[e]] = true;
    }
  }
  if (matrix.nnz() > 0) out.mean_distance = distances / static_cast<double>(matrix.nnz());
  if (matrix.rows > 0) {
    const SortedLengths lengths(matrix, out.rows.longest);
    out.row_min = lengths.quantile(0, matrix.rows);
    out.row_q1 = lengths.quantile(0.25, matrix.rows);
    out.row_median = lengths.quantile(0.5, matrix.rows);
    out.row_q3 = lengths.quantile(0.75, matrix.rows);
    out.row_p99 = lengths.quantile(0.99, matrix.rows);
  }
  if (matrix.rows == matrix.cols) {
    const Graph transposed = transpose_pattern(matrix);
    out.symmetric_pattern =
        transposed.ptr == matrix.row_ptr && transposed.adjacent == matrix.col_idx;
  }
  return out;
}

}  // namespace spmmbench
