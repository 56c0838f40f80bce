#pragma once

#include <span>

namespace spmmbench {

// How long to go on sampling: until the noise of the samples is at most `noise` and there are
// `min_samples` of them, or until `max_samples` or `max_seconds` are reached.
struct SampleLimits {
  double noise = 0.01;  // relative_noise
  int min_samples = 10;
  int max_samples = 200;
  double max_seconds = 1;

  bool enough(std::span<const double> samples_us, double elapsed_s) const;
};

}  // namespace spmmbench
