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

std::int64_t longest_row(const CsrMatrix& matrix) {
  std::int64_t longest = 0;
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    longest = std::max(longest, matrix.row_length(row));
  return longest;
}

double share_of_empty_rows(const CsrMatrix& matrix) {
  constexpr std::int64_t kRows = kRowsOfPlace;
  const std::int64_t places = std::min(kSampledPlaces, (matrix.rows + kRows - 1) / kRows);
  std::int64_t empty = 0, rows = 0;
  for (std::int64_t i = 0; i < places; ++i) {
    const std::int64_t first = std::max(kRows, matrix.rows / places) * i;
    const std::int64_t last = std::min(first + kRows, matrix.rows);
    for (std::int64_t row = first; row < last; ++row) empty += matrix.row_length(row) == 0;
    rows += last - first;
  }
  return static_cast<double>(empty) / static_cast<double>(rows);
}

}  // namespace spmmbench
