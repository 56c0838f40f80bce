#pragma once

#include <functional>

#include "spmmbench/device.hpp"

namespace spmmbench {

// Launches ten times, into poisoned memory each time: is every element of C the same to the bit as
// after the first? Kernels that add atomically, in an order that differs, are not.
bool launches_repeat(Device& device, const DenseView& c, const std::function<void()>& launch);

}  // namespace spmmbench
