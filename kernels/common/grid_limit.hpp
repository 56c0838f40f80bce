#pragma once

#include <cstdint>

namespace spmmbench {

// The most CTAs of a grid in y (CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability").
inline constexpr std::int64_t kMaxGridY = 65535;

// The most columns of C for kernels that number them in 32 bits. The last tile of columns, at most
// 256 wide, may reach past N.
inline constexpr std::int64_t kMostNumberedColumns = (std::int64_t{1} << 31) - 257;

}  // namespace spmmbench
