#pragma once

#include "gpu/rates.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

// Facts about the build, the host and the device; clocks and the event floor as measured now; the
// rates that the device was measured at.
RunContext collect_context(const std::vector<std::string>& argv, std::uint64_t seed, Device& device,
                           const DeviceRates& rates);

std::string tool_version();  // "0.1.0 (revision)"

}  // namespace spmmbench
