#pragma once
// Columns that many rows have.

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// The share of the nonzeros in hub columns, those that at least a quarter of the rows have, by a
// sample of 4096 nonzeros. Deterministic; 0 without nonzeros.
double hub_column_share(const CsrMatrix& matrix);

}  // namespace spmmbench
