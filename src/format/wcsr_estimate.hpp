#pragma once
// What windows of each height would gather, from a sample: how a kernel chooses a shape before
// building.

#include <array>
#include <cstdint>

#include "format/wcsr.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench {

constexpr std::array<int, 3> kWcsrHeights = {8, 16, 32};

struct WcsrEstimate {
  // Distinct columns per window, summed over the windows, as a share of the nonzeros, by height.
  std::array<double, 3> gathered_share = {};
  // The same with 16-column tiles filled up: tiles * 16 / nnz.
  std::array<double, 3> stored_share = {};
};

// From groups of 32 places, chosen in proportion to their nonzeros: 32 to 96 of them. Of a group
// with many nonzeros some columns stand for all. `row_order` as in Wcsr: empty is natural.
// Deterministic.
WcsrEstimate estimate_wcsr(const CsrMatrix& matrix, const Permutation& row_order);

// Standard deviation of the row lengths / their mean; 0 without nonzeros. Parallel.
double row_length_variation(const CsrMatrix& matrix);

}  // namespace spmmbench
