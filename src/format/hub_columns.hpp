#pragma once
// Columns that many rows have.

#include "spmmbench/matrix.hpp"

namespace spmmbench {

struct HubColumns {
  double share = 0;  // of the nonzeros
  int count = 0;
};

// Columns that at least a quarter of the rows have, by a sample of 1,024 to 16,384 nonzeros, more
// the longer the rows are. None where rows have over 341 nonzeros in the mean: so large a sample
// could not tell such columns from others. Deterministic.
HubColumns find_hub_columns(const CsrMatrix& matrix);

}  // namespace spmmbench
