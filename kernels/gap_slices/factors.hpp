#pragma once
// Written by scripts/refit.

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::gap_slices {

inline std::vector<Factors> factors() { return {}; }

}  // namespace spmmbench::gap_slices
