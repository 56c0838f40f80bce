#pragma once
// Counter-based random numbers: a pure function of (seed, row, col), the same on host and device
// and in any order of evaluation. Used for A's values when a file is a pattern, and for B.

#include <cstdint>

#include "spmmbench/host_device.hpp"
#include "spmmbench/precision.hpp"

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

// The same on 2^53 odd multiples of 2^-53, exact in fp64. It lies within 2^-24 of uniform_at.
SPMMBENCH_HOST_DEVICE constexpr double uniform64_at(std::uint64_t seed, std::uint64_t row,
                                                    std::uint64_t col) {
  const auto bits = static_cast<std::int64_t>(hash_position(seed, row, col) >> 11);  // 53 bits
  return static_cast<double>(2 * bits + 1 - (std::int64_t{1} << 53)) *
         (1.0 / static_cast<double>(std::int64_t{1} << 53));
}

// An element of a drawn B, as it is stored: U(-1, 1), over the scale of a matrix whose greatest
// magnitude is 1, rounded to the precision.
SPMMBENCH_HOST_DEVICE constexpr double uniform_in(Precision precision, std::uint64_t seed,
                                                  std::uint64_t row, std::uint64_t col) {
  if (precision == Precision::fp64) return uniform64_at(seed, row, col);
  return round_to(precision, uniform_at(seed, row, col) / scale_of(precision, 1.0F));
}

// Scales of blocks: 1 or 2, so that a neighbour's is not the same.
SPMMBENCH_HOST_DEVICE constexpr float drawn_block_scale(std::uint64_t seed, std::uint64_t row,
                                                        std::uint64_t col) {
  return (hash_position(seed, row, col) & 1) != 0 ? 2 : 1;
}

// Streams of one seed that must differ.
inline constexpr std::uint64_t kStreamA = 0xA;
inline constexpr std::uint64_t kStreamB = 0xB;
SPMMBENCH_HOST_DEVICE constexpr std::uint64_t stream_seed(std::uint64_t seed,
                                                          std::uint64_t stream) {
  return mix64(seed ^ (stream << 56));
}

// Values of A and B for which every product and every sum of a row is exact (verify/exact.hpp has
// the limits). Of each product one factor has many bits and the other few: a hash of k says which.
// So a kernel that rounds A or B to fewer bits than the precision has gives other sums. No value is
// zero.
struct Lattice {
  std::uint64_t seed = 0;
  std::int64_t wide = 1, narrow = 1;  // the largest numerators, below 2^53
  // One over the power of two above each.
  double wide_unit = 0.5, narrow_unit = 0.5;

  SPMMBENCH_HOST_DEVICE constexpr double a(std::uint64_t i, std::uint64_t k) const {
    return value(hash_position(stream_seed(seed, kStreamA), i, k), wide_in_a(k));
  }
  SPMMBENCH_HOST_DEVICE constexpr double b(std::uint64_t k, std::uint64_t j) const {
    return value(hash_position(stream_seed(seed, kStreamB), k, j), !wide_in_a(k));
  }
  SPMMBENCH_HOST_DEVICE constexpr bool wide_in_a(std::uint64_t k) const {
    return (hash_position(seed, k, 0) & 1) != 0;
  }

 private:
  SPMMBENCH_HOST_DEVICE constexpr double value(std::uint64_t hash, bool is_wide) const {
    const auto top = static_cast<std::uint64_t>(is_wide ? wide : narrow);
    const auto numerator = static_cast<double>(1 + (hash >> 1) % top);
    return ((hash & 1) != 0 ? -numerator : numerator) * (is_wide ? wide_unit : narrow_unit);
  }
};

}  // namespace spmmbench
