#pragma once
// Written by scripts/refit.

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::jagged_slices {

inline std::vector<Factors> factors() { return {}; }

}  // namespace spmmbench::jagged_slices
