#pragma once

#include "spmmbench/measurement.hpp"

namespace spmmbench {

// Enough when the noise is under its limit (after min_samples), or at a cap of samples or seconds.
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
