#pragma once
// Written by scripts/refit.

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::rsh {

inline std::vector<Factors> factors() { return {}; }

}  // namespace spmmbench::rsh
