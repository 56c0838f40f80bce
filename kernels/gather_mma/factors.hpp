#pragma once
// Written by scripts/refit.

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::gather_mma {

inline std::vector<Factors> factors() { return {}; }

}  // namespace spmmbench::gather_mma
