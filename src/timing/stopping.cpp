#include "timing/stopping.hpp"

#include "timing/quantiles.hpp"

namespace spmmbench {

bool SampleLimits::enough(std::span<const double> samples_us, double elapsed_s) const {
  const auto n = static_cast<int>(samples_us.size());
  if (n == 0) return false;
  if (n >= max_samples || elapsed_s >= max_seconds) return true;
  return n >= min_samples && relative_noise(samples_us) <= noise;
}

}  // namespace spmmbench
