#pragma once
// What the kernel bitmap_dense stores of A (bitmap_dense/format.hpp), and how many bytes that is
// where zeros are scattered. The kernel and auto's predictions use the same.

#include <algorithm>
#include <cmath>

#include "spmmbench/precision.hpp"

namespace spmmbench::bitmap_dense {

// The positions of A, and the share of nonzeros among them. Two values of 8 bits are a position,
// which is stored if one of them is not zero.
struct Places {
  double count, fill;
};
inline Places places_of(double entries, double nonzeros, ElementType type) {
  const double fill = nonzeros / std::max(1.0, entries);
  if (bytes_of(type) == 2) return {entries, fill};
  return {entries / 2, 1 - (1 - fill) * (1 - fill)};
}

inline double bytes_of_pairs(double positions, double fill) {
  constexpr double kWordBytes = 4;
  const double pairs = positions / 2, empty = (1 - fill) * (1 - fill);
  return pairs / 8 + kWordBytes * pairs * (1 - empty);
}
// Two values to a word, eight positions share words. Their last word is half full where their
// number is odd.
inline double bytes_of_values(double positions, double fill) {
  constexpr double kValueBytes = 2, kSharing = 8;
  const double odd = (1 - std::pow(1 - 2 * fill, kSharing)) / 2;
  return positions / 8 + kValueBytes * (positions * fill + positions / kSharing * odd);
}

// Values take fewer bytes and more instructions. They are faster where A comes from memory and has
// few zeros, while the tensor cores have little to do (measured on an H200 at 50 to 80 % zeros and
// 1 to 64 columns, docs/decisions/bitmap-dense.md). With few columns that begins before pairs fill
// the L2 cache, which keeps little of what nearly fills it from launch to launch.
inline bool prefers_values(double positions, double fill, double columns, double l2_bytes) {
  constexpr double kMostColumns = 64, kNarrowColumns = 32, kFewColumns = 16;
  constexpr double kLeastFill = 0.38, kLeastFillNarrow = 0.33;
  constexpr double kNearlyFull = 0.75;
  const double room = (columns <= kFewColumns ? kNearlyFull : 1) * l2_bytes;
  return columns <= kMostColumns && bytes_of_pairs(positions, fill) > room &&
         fill >= (columns <= kNarrowColumns ? kLeastFillNarrow : kLeastFill);
}

inline double bytes_of(double positions, double fill, double columns, double l2_bytes) {
  return prefers_values(positions, fill, columns, l2_bytes) ? bytes_of_values(positions, fill)
                                                            : bytes_of_pairs(positions, fill);
}

}  // namespace spmmbench::bitmap_dense
