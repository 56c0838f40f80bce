#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "spmmbench/precision.hpp"

namespace spmmbench {

// The greatest magnitude among the finite values; 0 if there is none.
inline float greatest_magnitude(const std::vector<float>& values) {
  float greatest = 0;
#pragma omp parallel for schedule(static) reduction(max : greatest)
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i])) greatest = std::max(greatest, std::abs(values[i]));
  return greatest;
}

// What values are divided by before they are rounded: the scale of a matrix, never 0.
inline float nonzero_scale_of(Precision precision, float greatest) {
  return std::max(scale_of(precision, greatest), std::numeric_limits<float>::min());
}

}  // namespace spmmbench
