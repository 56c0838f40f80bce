#pragma once
// Estimates on a sample what windows of each height would gather. A kernel chooses a height by them
// before it builds.

#include <array>
#include <cstdint>
#include <span>
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

// Samples groups of 32 places, drawn in proportion to their nonzeros: 64 groups, or as few as 16
// where 64 have more than 4096 nonzeros, or 8 or 4 where all groups have about as many, and many.
// In a group with many nonzeros only some columns are counted, and of 2048 nonzeros and more only
// those in a range of the columns. `row_order` as in Wcsr: empty is natural. Deterministic.
WcsrEstimate estimate_wcsr(const CsrMatrix& matrix, const Permutation& row_order);
// The same in natural order, where rows_at_nonzeros are known; there must be some.
WcsrEstimate estimate_wcsr_at(const CsrMatrix& matrix, const std::vector<std::int64_t>& sampled);
// What is expected where rows are sorted by length, from the lengths of 16 rows alone: as if every
// nonzero lay in any column in proportion to the column's nonzeros, and columns had as many as rows
// have. An order by length keeps little else that rows share. There must be nonzeros.
WcsrEstimate expect_by_length(const CsrMatrix& matrix);
// The same from the lengths of rows_at_nonzeros.
WcsrEstimate expect_by_length(std::span<const std::int64_t> lengths, std::int64_t nnz);

inline constexpr std::int64_t kSampledRows = 64;
// The rows of 64 evenly spaced nonzeros, ascending; none without nonzeros. All samples of a matrix
// use these rows, since reading a new place of it costs more than counting there.
std::vector<std::int64_t> rows_at_nonzeros(const CsrMatrix& matrix);

// Standard deviation of the row lengths / their mean, from rows_at_nonzeros; 0 without nonzeros.
double row_length_variation(const CsrMatrix& matrix);
double row_length_variation(const CsrMatrix& matrix, const std::vector<std::int64_t>& sampled);
// The same from the lengths of these rows.
double row_length_variation(std::span<const std::int64_t> lengths, std::int64_t rows,
                            std::int64_t nnz);

}  // namespace spmmbench
