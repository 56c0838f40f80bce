#pragma once

#include "spmmbench/measurement.hpp"

namespace spmmbench {

// Samples are enough when their noise is at most its limit and there are min_samples, or when
// max_samples or max_seconds are reached.
class NoiseLimit final : public StoppingRule {
 public:
  struct Limits {
    double noise = 0.01;  // relative_noise
    int min_samples = 10;
    int max_samples = 200;
    double max_seconds = 1;
  };
  explicit NoiseLimit(const Limits& limits) : limits_(limits) {}
  bool enough(std::span<const double> samples_us, double elapsed_s) const override;

 private:
  Limits limits_;
};

}  // namespace spmmbench
