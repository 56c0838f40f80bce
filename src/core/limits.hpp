#pragma once

#include <cstdint>

namespace spmmbench {

// The largest N. A row of B then takes 4 TB; all of B may take more bytes than 64 bits count
// (dense_bytes.hpp).
inline constexpr std::int64_t kLargestN = std::int64_t{1} << 40;

// What the widest accesses of kernels on a GPU to B and C are aligned to: vector loads and stores,
// cp.async, bulk copies, and the addresses and strides of tensor maps.
inline constexpr std::int64_t kVectorBytes = 16;

}  // namespace spmmbench
