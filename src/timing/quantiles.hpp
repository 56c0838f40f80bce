#pragma once

#include <span>
#include <vector>

#include "spmmbench/measurement.hpp"

namespace spmmbench {

// Linear interpolation between order statistics; `q` in [0, 1], `samples` not empty, any order.
double quantile(std::span<const double> samples, double q);

Timing summarise(std::vector<double> samples_us, int launches_per_sample);

// Standard error of the median relative to it, from the interquartile range: 1.2533 (IQR / 1.349) /
// sqrt(n), the normal-theory factor. Infinity below four samples.
double relative_noise(std::span<const double> samples);

}  // namespace spmmbench
