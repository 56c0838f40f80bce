#pragma once
// Timed samples and their summary.

#include <vector>

namespace spmmbench {

// Times per launch in microseconds. Quartiles by linear interpolation between order statistics.
struct Timing {
  double median_us = 0;
  double q1_us = 0;
  double q3_us = 0;
  double min_us = 0;
  int launches_per_sample = 1;
  std::vector<double> samples_us;  // in the order measured

  int n() const { return static_cast<int>(samples_us.size()); }
};

}  // namespace spmmbench
