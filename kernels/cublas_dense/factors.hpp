#pragma once
// Written by scripts/refit.

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::cublas_dense {

inline std::vector<Factors> factors() { return {}; }

}  // namespace spmmbench::cublas_dense
