#pragma once
// Clusters of rows by their distance from a row at the rim of the matrix. Two rows that share a
// column are one step apart. All rows that have a column lie at two distances that follow one
// another, so a cache that keeps the columns of two distances reads each row of B from memory once.
// kernels/row_order/rim_distance.hpp computes the same order on the device.

#include <cstdint>

#include "spmmbench/host_device.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench::rim {

constexpr int kClusterRows = 8;  // side by side in the order that is sorted
// The search ends there, since each distance is a step of it: rows further away have none.
constexpr std::int32_t kMostDistances = 1024;
// With fewer distances, two neighbouring ones together hold a large part of all columns.
constexpr std::int32_t kLeastDistances = 6;

// Distances from the row at the rim: the last of those from the row with the middle nonzero, the
// first in natural order where several are.
struct Reached {
  std::int32_t distances = 0;
  std::int64_t rows = 0;  // with a distance

  // Whether clusters are sorted: a small component says nothing about the others.
  SPMMBENCH_HOST_DEVICE constexpr bool sorts(std::int64_t all_rows) const {
    return distances >= kLeastDistances && 2 * rows >= all_rows && all_rows >= kClusterRows;
  }
};

// Sorts clusters by the least distance of their rows, those without one last. Equal clusters keep
// their order, and so do rows after the last whole cluster. The natural order where `sorts` is
// false.
Permutation sort_by_distance(const CsrMatrix& matrix, const Permutation& order);

}  // namespace spmmbench::rim
