#pragma once
// What windows of each height would gather, from a sample: how a kernel chooses a shape before
// building.

#include <array>
#include <cstdint>
#include <vector>

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

// From groups of 32 places, chosen in proportion to their nonzeros: 64 of them, or as few as 16
// where 64 have more than `most_entries`. Of a group with many nonzeros some columns stand for all.
// `row_order` as in Wcsr: empty is natural. Deterministic.
WcsrEstimate estimate_wcsr(const CsrMatrix& matrix, const Permutation& row_order,
                           std::int64_t most_entries = 1 << 15);

// Share of the nonzeros whose column is not among the last `kept` distinct ones: what comes from
// memory again where a cache keeps so many rows of B, first uses included. From four stretches of
// places. `row_order` as above.
double new_column_share(const CsrMatrix& matrix, const Permutation& row_order, std::int64_t kept);

// The rows of 64 evenly spaced nonzeros, ascending; none without nonzeros. Whoever samples a matrix
// takes these, since reading a new place of it costs more than counting there.
std::vector<std::int64_t> rows_at_nonzeros(const CsrMatrix& matrix);

// Standard deviation of the row lengths / their mean, from rows_at_nonzeros; 0 without nonzeros.
double row_length_variation(const CsrMatrix& matrix);

}  // namespace spmmbench
