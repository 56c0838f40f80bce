#pragma once
// How many nonzeros the rows of a matrix have.

#include <cstdint>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

struct RowLengths {
  std::int64_t longest = 0;  // nonzeros
  std::int64_t empty = 0;    // rows without a nonzero
  double mean = 0;           // nonzeros
  double variation = 0;      // coefficient of variation: standard deviation over mean; 0 if empty
};

// Reads every row pointer.
RowLengths row_lengths(const CsrMatrix& matrix);

// The nonzeros of the longest row. Reads every row pointer.
std::int64_t longest_row(const CsrMatrix& matrix);

// The rows of a sample: this many that share a cache line of row pointers, in this many places.
inline constexpr std::int64_t kSampledPlaces = 128, kRowsOfPlace = 8;
// The share of empty rows in such a sample; the matrix has at least one row.
double share_of_empty_rows(const CsrMatrix& matrix);

}  // namespace spmmbench
