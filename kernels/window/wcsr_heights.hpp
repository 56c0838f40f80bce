#pragma once
// kWcsrHeights for a GPU, where the array does not lie.

#include <array>
#include <cstddef>

#include "format/wcsr_estimate.hpp"
#include "spmmbench/host_device.hpp"

namespace spmmbench {

constexpr std::size_t kWcsrHeightCount = 3;
SPMMBENCH_HOST_DEVICE constexpr int wcsr_height(std::size_t index) { return 8 << index; }
static_assert(kWcsrHeights == std::array{wcsr_height(0), wcsr_height(1), wcsr_height(2)});

}  // namespace spmmbench
