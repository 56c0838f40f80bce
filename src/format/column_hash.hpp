#pragma once

#include <cstdint>

#include "spmmbench/host_device.hpp"

namespace spmmbench {

// Spreads columns evenly over 32 bits, so that those with the lowest hashes are a sample of all.
SPMMBENCH_HOST_DEVICE inline std::uint32_t column_hash(std::int32_t column) {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  return static_cast<std::uint32_t>(static_cast<std::uint32_t>(column) * kMultiplier >> 32);
}

}  // namespace spmmbench
