#pragma once

#include "spmmbench/device.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

// Facts about the build, the host and the device; clocks, copy bandwidth and the event floor as
// measured now. A copy bandwidth that is given is not measured.
RunContext collect_context(const std::vector<std::string>& argv, std::uint64_t seed, Device& device,
                           double copy_bytes_per_second = 0);

std::string tool_version();  // "0.1.0 (revision)"

}  // namespace spmmbench
