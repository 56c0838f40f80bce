#pragma once
// Written by scripts/refit.

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::bitmap_dense {

inline std::vector<Factors> factors() { return {}; }

}  // namespace spmmbench::bitmap_dense
