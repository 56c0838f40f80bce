#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace spmmbench {

// Of the finite values; 0 without one.
inline float greatest_magnitude(const std::vector<float>& values) {
  float greatest = 0;
#pragma omp parallel for schedule(static) reduction(max : greatest)
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i])) greatest = std::max(greatest, std::abs(values[i]));
  return greatest;
}

}  // namespace spmmbench
