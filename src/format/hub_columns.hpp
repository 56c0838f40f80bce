#pragma once
// Columns that many rows have.

#include "spmmbench/matrix.hpp"

namespace spmmbench {

struct HubColumns {
  double share = 0;  // of the nonzeros
  int count = 0;
};

// Columns that at least a quarter of the rows have, by a sample of 4096 nonzeros. None where rows
// have over 340 nonzeros in the mean: the sample cannot tell such columns from others then.
// Deterministic.
HubColumns find_hub_columns(const CsrMatrix& matrix);

}  // namespace spmmbench
