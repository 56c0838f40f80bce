#pragma once
// The rates of a device as this process knows them: its parent measured them, a file has them
// (select/cache.hpp), or they are measured when they are first asked for.

#include <functional>

#include "gpu/rates.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench {

// As the parent process measured them; 0 where it did not.
void set_rates(const DeviceInfo& device, const DeviceRates& rates);

// The rates that are known without measuring; 0 for any other.
DeviceRates known_rates(const DeviceInfo& device);

using MeasureRate = std::function<double(Device&)>;

// All of them; of the host the copy alone. The cache keeps gather and dense; the copy, which
// decides every bound of a run, is measured by each run.
DeviceRates rates_of(Device& device, const MeasureRate& gather = measure_gather,
                     const MeasureRate& dense = measure_dense);

}  // namespace spmmbench
