#pragma once
// Where an element lies in a step of bitmap queues, and which positions a lane stores of a step.
// The host and the device build with these.

#include <bit>
#include <cstdint>

#include "bitmap_dense/format.hpp"

namespace spmmbench::bitmap_dense::bitmap_bits {

// Where element (row, col) of a step lies.
struct Place {
  int lane, position;
};
constexpr Place place_of(int row, int col) {
  const int fragment = col / 16, reg = row / 8 + 2 * (col % 16 / 8);
  return {row % 8 * 4 + col % 8 / 2, 2 * (4 * fragment + reg) + col % 2};
}

// The bits of what is stored of a lane's step, `missing` words more than it must have.
constexpr std::uint16_t of_pairs(std::uint32_t present, int missing) {
  std::uint16_t bits = 0;
  for (int reg = 0; reg < BitmapPanels::kStepRegisters; ++reg) {
    const bool stored = (present >> 2 * reg & 3U) != 0;
    bits |= static_cast<std::uint16_t>(stored ? 1U << reg : 0);
  }
  for (unsigned bit = 1; missing > 0; bit <<= 1)
    if ((bits & bit) == 0) {
      bits |= static_cast<std::uint16_t>(bit);
      --missing;
    }
  return bits;
}
constexpr std::uint32_t of_values(std::uint32_t present, int missing) {
  const int wanted = ValueQueues::words_of(present) + missing;
  for (std::uint32_t bit = 1; ValueQueues::words_of(present) < wanted; bit <<= 1) present |= bit;
  // The kernel takes the values of two registers at a time, and four of them from two whole words.
  // A zero before them completes a word, so it takes no room: without it the last one is half full.
  for (int first = 0; first < BitmapPanels::kLanePositions; first += 8) {
    const std::uint32_t half = present >> first & 15U;
    const bool last_are_four = (present >> first & 0xF0U) == 0xF0U;
    if (last_are_four && std::popcount(half) % 2 != 0) present |= (half + 1) << first;
  }
  return present;
}
template <class Queues>
constexpr typename Queues::Bits stored(std::uint32_t present, int missing = 0) {
  if constexpr (Queues::kPairs) return of_pairs(present, missing);
  else return of_values(present, missing);
}

}  // namespace spmmbench::bitmap_dense::bitmap_bits
