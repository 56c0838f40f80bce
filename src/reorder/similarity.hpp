#pragma once
// Weighted Jaccard similarity of rows (RSH-SpMM, section 3.4): sim(r, u) = sum of w_j over the
// common columns / sum over the columns of either, with w_j = d_j^-alpha and d_j the column's
// count.

#include <cstdint>
#include <vector>

#include "spmmbench/matrix.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench {

class WeightedJaccard {
 public:
  // Keeps a reference to the matrix.
  WeightedJaccard(const CsrMatrix& matrix, double alpha);

  float similarity(std::int64_t r, std::int64_t u) const;  // in [0, 1]; 0 when a row is empty
  const std::vector<std::int32_t>& column_counts() const { return counts_; }

 private:
  const CsrMatrix& matrix_;
  std::vector<std::int32_t> counts_;  // per column
  std::vector<float> weights_;        // per column
  std::vector<float> row_weights_;    // sum of a row's weights
};

// Mean of 1 - sim over neighbours in `order`, rows without entries left out. 0 for less than two.
double mean_adjacent_cost(const CsrMatrix& matrix, const WeightedJaccard& jaccard,
                          const Permutation& order);

}  // namespace spmmbench
