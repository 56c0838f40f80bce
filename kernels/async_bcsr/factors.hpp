#pragma once
// Written by scripts/refit.

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::async_bcsr {

inline std::vector<Factors> factors() { return {}; }

}  // namespace spmmbench::async_bcsr
