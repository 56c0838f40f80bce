#pragma once
// Whether the rows of a matrix resemble each other, so that some order of them brings rows together
// that read the same rows of B.

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// A few rows are sampled in proportion to their nonzeros. For each, other rows that share a column
// with it are looked for in a part of the matrix. Returned is the share of a sampled row's other
// columns that the most similar of them has too, mean over the sampled rows for which one was
// found; kUnknownRowOverlap where these are too few to tell. The most similar row of the whole
// matrix would often have a larger share. Reads 16384 column indices or one in 64, whichever is
// more, and up to four times as many where the rows that it comes by are long. Deterministic.
double row_overlap(const CsrMatrix& matrix);

// Taken where too few similar rows were found: of 0 to 1 those from 0.15 to 0.3 choose best on
// matrices that were left out of the fit (docs/decisions/selection-model.md).
inline constexpr double kUnknownRowOverlap = 0.25;

}  // namespace spmmbench
