#include "core/row_lengths.hpp"

#include <algorithm>
#include <cmath>

namespace spmmbench {

RowLengths row_lengths(const CsrMatrix& matrix) {
  RowLengths out;
  if (matrix.nnz() == 0) {
    out.empty = matrix.rows;
    return out;
  }
  const auto rows = static_cast<double>(matrix.rows);
  out.mean = static_cast<double>(matrix.nnz()) / rows;
  double squares = 0;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    const std::int64_t length = matrix.row_length(row);
    out.longest = std::max(out.longest, length);
    out.empty += length == 0;
    squares += std::pow(static_cast<double>(length) - out.mean, 2);
  }
  out.variation = std::sqrt(squares / rows) / out.mean;
  return out;
}

}  // namespace spmmbench
