#pragma once
// The hot and cold times of a case whose product is right, and whether each launch earns them.

#include "measure/case_input.hpp"
#include "timing/stopping.hpp"

namespace spmmbench {

// Fills the times of the row, or says that it is wrong and returns false.
bool take_times(const CaseInput& input, const SampleLimits& limits, Plan& plan, ResultRow& row);

}  // namespace spmmbench
