#pragma once
// src/reorder/rim_distance.hpp on the device. The order is the same as the host's.

#include <cstdint>

#include "reorder/rim_distance.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"

namespace spmmbench {

// `order`: an int32 for each row; null: natural, in what is returned too. Returns when the order is
// there. Throws DeviceError.
Buffer sort_by_distance(const DeviceCsr& a, const Buffer& order, Device& device);

}  // namespace spmmbench
