#pragma once

#include "spmmbench/device.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

// Build, host and device facts, clocks, copy bandwidth and the event floor, measured now. The copy
// bandwidth is not measured where it is given.
RunContext collect_context(const std::vector<std::string>& argv, std::uint64_t seed, Device& device,
                           double copy_bytes_per_second = 0);

std::string tool_version();  // "0.1.0 (revision)"

}  // namespace spmmbench
