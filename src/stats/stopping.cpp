#include "stats/stopping.hpp"

#include "stats/quantiles.hpp"

namespace spmmbench {

bool NoiseLimit::enough(std::span<const double> samples_us, double elapsed_s) const {
  const auto n = static_cast<int>(samples_us.size());
  if (n == 0) return false;
  if (n >= limits_.max_samples || elapsed_s >= limits_.max_seconds) return true;
  return n >= limits_.min_samples && relative_noise(samples_us) <= limits_.noise;
}

}  // namespace spmmbench
