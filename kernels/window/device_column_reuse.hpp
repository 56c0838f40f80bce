#pragma once
// new_column_shares of a matrix on the device.

#include <cstdint>
#include <vector>

#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"

namespace spmmbench {

// The same numbers. `row_orders`: on the device, an int32 for each row; null: natural. Waits.
std::vector<double> new_column_shares(const DeviceCsr& a,
                                      const std::vector<const std::int32_t*>& row_orders,
                                      std::int64_t kept, Device& device);

}  // namespace spmmbench
