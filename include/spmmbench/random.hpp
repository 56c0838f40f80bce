#pragma once
// Counter-based random numbers: a pure function of (seed, row, col), the same on host and device
// and in any order of evaluation. Used for A's values when a file is a pattern, and for B.

#include <cstdint>

#include "spmmbench/host_device.hpp"

namespace spmmbench {

// splitmix64's finaliser (Steele, Lea, Flood 2014): a bijection on 64 bits.
SPMMBENCH_HOST_DEVICE constexpr std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9ULL;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBULL;
  x ^= x >> 31;
  return x;
}

SPMMBENCH_HOST_DEVICE constexpr std::uint64_t hash_position(std::uint64_t seed, std::uint64_t row,
                                                            std::uint64_t col) {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ULL;
  return mix64(mix64(mix64(seed + kGolden) ^ (row + kGolden)) + (col + 1) * kGolden);
}

// U(-1, 1) on 2^24 odd multiples of 2^-24: never 0, never +-1, exact in fp32.
SPMMBENCH_HOST_DEVICE constexpr float uniform_at(std::uint64_t seed, std::uint64_t row,
                                                 std::uint64_t col) {
  const auto bits = static_cast<std::int32_t>(hash_position(seed, row, col) >> 40);  // 24 bits
  return static_cast<float>(2 * bits + 1 - (1 << 24)) * (1.0F / (1 << 24));
}

// One of +-1/8, +-2/8, ..., +-top/8 with `top` at most 7: exact in every input type, never 0.
SPMMBENCH_HOST_DEVICE constexpr float lattice_at(std::uint64_t seed, std::uint64_t row,
                                                 std::uint64_t col, int top) {
  const std::uint64_t hash = hash_position(seed, row, col);
  const int eighths = 1 + static_cast<int>((hash >> 33) % static_cast<std::uint64_t>(top));
  return static_cast<float>((hash & 1) != 0 ? -eighths : eighths) * 0.125F;
}

// Streams of one seed that must differ.
inline constexpr std::uint64_t kStreamA = 0xA;
inline constexpr std::uint64_t kStreamB = 0xB;
SPMMBENCH_HOST_DEVICE constexpr std::uint64_t stream_seed(std::uint64_t seed,
                                                          std::uint64_t stream) {
  return mix64(seed ^ (stream << 56));
}

}  // namespace spmmbench
