#pragma once

#include <functional>

#include "spmmbench/device.hpp"
#include "spmmbench/kernel.hpp"

namespace spmmbench {

// Launches ten times, each time into a poisoned C. True if every element of C has the same bits
// after each launch. Kernels whose atomics add in a varying order give false.
bool launches_repeat(Device& device, const KernelInfo& kernel, const DenseView& c,
                     const std::function<void()>& launch);

}  // namespace spmmbench
