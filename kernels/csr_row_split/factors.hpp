#pragma once
// Written by scripts/refit.

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::csr_row_split {

inline std::vector<Factors> factors() { return {}; }

}  // namespace spmmbench::csr_row_split
