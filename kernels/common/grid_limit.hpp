#pragma once

#include <cstdint>

namespace spmmbench {

// The most CTAs of a grid in y (CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability").
inline constexpr std::int64_t kMaxGridY = 65535;

}  // namespace spmmbench
