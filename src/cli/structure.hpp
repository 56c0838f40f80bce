#pragma once
// The structure of a matrix as `inspect` shows it, before any format is built.

#include <cstdint>

#include "core/row_lengths.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench {

struct Structure {
  RowLengths rows;
  std::int64_t referenced_cols = 0;  // columns that hold a nonzero
  double row_min = 0, row_q1 = 0, row_median = 0, row_q3 = 0, row_p99 = 0;  // nonzeros
  std::int64_t bandwidth = 0;      // largest |row - column|
  double mean_distance = 0;        // mean |row - column|
  bool symmetric_pattern = false;  // square, and (i, j) is stored exactly when (j, i) is
};

Structure structure_of(const CsrMatrix& matrix);

}  // namespace spmmbench
