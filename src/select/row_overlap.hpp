#pragma once
// Whether the rows of a matrix resemble each other, so that some order of them brings rows together
// that read the same rows of B.

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// A few rows are sampled in proportion to their nonzeros. For each, some other rows are found that
// share a column with it. Returned is the share of the sampled row's other columns that the most
// similar of them has too, mean over the sample; 1 where no sampled row has a second column. Reads
// the column indices once, up to where all rows are found. Deterministic.
double row_overlap(const CsrMatrix& matrix);

}  // namespace spmmbench
