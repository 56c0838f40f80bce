#pragma once
// The hot and cold samples of a case, each launch of which is open to checks (spot_checks.hpp): a
// kernel that leaves work out in some launches is found, whatever it goes by.

#include <optional>

#include "measure/case_input.hpp"
#include "measure/spot_checks.hpp"
#include "timing/sampler.hpp"
#include "timing/stopping.hpp"

namespace spmmbench {

struct Times {
  Timing hot, cold;
};

// `launch_product` multiplies with the B that `checks` has for the launch. Throws WrongLaunch where
// a timed launch is found to be wrong. None where the C that the timed launches left is, or that of
// a later launch.
std::optional<Times> take_checked_times(const CaseInput& input, const SampleLimits& limits,
                                        const LaunchAt& launch_product, SpotChecks& checks,
                                        ResultRow& row);

}  // namespace spmmbench
