#pragma once
// The terms of a checksum, the same on host and device.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "spmmbench/host_device.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {

// The term of word number `at` of an array. The checksum is the sum of all terms, in any order.
SPMMBENCH_HOST_DEVICE constexpr std::uint64_t word_hash(std::int64_t at, std::uint64_t word) {
  return mix64(word + static_cast<std::uint64_t>(at + 1) * 0x9E3779B97F4A7C15ULL);
}

// Memory of a host or of a device that has a checksum: of its words of 8 bytes, the last of which
// is filled up with zeros. It begins at a multiple of 8 bytes on a GPU.
using ByteSpan = std::span<const std::byte>;

SPMMBENCH_HOST_DEVICE inline std::uint64_t last_word(const std::byte* from, std::size_t bytes) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    word |= std::uint64_t{static_cast<unsigned char>(from[i])} << (8 * i);
  return word;
}

}  // namespace spmmbench
