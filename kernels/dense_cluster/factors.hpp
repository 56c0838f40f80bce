#pragma once
// Written by scripts/refit.

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::dense_cluster {

inline std::vector<Factors> factors() { return {}; }

}  // namespace spmmbench::dense_cluster
