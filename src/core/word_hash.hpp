#pragma once
// The terms of a checksum, the same on host and device.

#include <cstdint>

#include "spmmbench/host_device.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {

// The term of word number `at` of an array. The checksum is the sum of all terms, in any order.
SPMMBENCH_HOST_DEVICE constexpr std::uint64_t word_hash(std::int64_t at, std::uint64_t word) {
  return mix64(word + static_cast<std::uint64_t>(at + 1) * 0x9E3779B97F4A7C15ULL);
}

}  // namespace spmmbench
