#include "timing/quantiles.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace spmmbench {
namespace {

double quantile_of_sorted(std::span<const double> sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::vector<double> sorted_copy(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

double quantile(std::span<const double> samples, double q) {
  return quantile_of_sorted(sorted_copy(samples), q);
}

Timing summarise(std::vector<double> samples_us, int launches_per_sample) {
  const std::vector<double> sorted = sorted_copy(samples_us);
  Timing timing;
  timing.median_us = quantile_of_sorted(sorted, 0.5);
  timing.q1_us = quantile_of_sorted(sorted, 0.25);
  timing.q3_us = quantile_of_sorted(sorted, 0.75);
  timing.min_us = sorted.front();
  timing.launches_per_sample = launches_per_sample;
  timing.samples_us = std::move(samples_us);
  return timing;
}

double relative_noise(std::span<const double> samples) {
  if (samples.size() < 4) return std::numeric_limits<double>::infinity();
  const std::vector<double> sorted = sorted_copy(samples);
  const double median = quantile_of_sorted(sorted, 0.5);
  const double range = quantile_of_sorted(sorted, 0.75) - quantile_of_sorted(sorted, 0.25);
  if (median <= 0) return std::numeric_limits<double>::infinity();
  return 1.2533 * range / 1.349 / median / std::sqrt(static_cast<double>(samples.size()));
}

}  // namespace spmmbench
