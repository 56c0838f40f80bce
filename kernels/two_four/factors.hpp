#pragma once
// Written by scripts/refit.

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::two_four {

inline std::vector<Factors> factors() { return {}; }

}  // namespace spmmbench::two_four
