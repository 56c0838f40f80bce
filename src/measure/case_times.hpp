#pragma once
// The hot and cold times of a case whose product is right, and whether each launch earns them.

#include "gpu/scaled_launches.hpp"
#include "measure/case_input.hpp"
#include "timing/stopping.hpp"

namespace spmmbench {

// Fills the times of the row, or says that it is wrong and returns false.
bool take_times(const CaseInput& input, const SampleLimits& limits, ScaledLaunches& launches,
                ResultRow& row);

// The least time that parts of a launch can take.
struct LeastTimes {
  double writing_us = 0;   // C
  double products_us = 0;  // of A's values other than zero; 0 where B may hold zeros
};
LeastTimes least_times(const CaseInput& input);

}  // namespace spmmbench
