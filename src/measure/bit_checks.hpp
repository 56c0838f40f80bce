#pragma once
// The third verification: where the plan states its order of sums, elements of C that are picked at
// random are predicted bit by bit.

#include <cstdint>

#include "measure/case_input.hpp"
#include "spmmbench/kernel.hpp"

namespace spmmbench {

struct BitCheck {
  std::int64_t predicted = 0, equal = 0;  // elements
};

// Checks the C that the plan's last launch left. Nothing is predicted for a plan that does not say
// in which order it adds up.
BitCheck check_bits(const CaseInput& input, Plan& plan);

}  // namespace spmmbench
