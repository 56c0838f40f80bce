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

  // Compares one row with many: its columns are marked, so that another row is walked without a
  // merge. The same values as similarity(). One per thread.
  class Row {
   public:
    explicit Row(const WeightedJaccard& jaccard)
        : jaccard_(jaccard), marked_(jaccard.counts_.size(), 0) {}
    void set(std::int64_t row);
    float similarity(std::int64_t u) const;

   private:
    void mark(bool on);
    const WeightedJaccard& jaccard_;
    std::vector<std::uint8_t> marked_;  // per column
    std::int64_t row_ = -1;
  };

  const std::vector<std::int32_t>& column_counts() const { return counts_; }

 private:
  // Of two rows with `common` weight in common.
  float ratio(std::int64_t r, std::int64_t u, float common) const;

  const CsrMatrix& matrix_;
  std::vector<std::int32_t> counts_;  // per column
  std::vector<float> weights_;        // per column
  std::vector<float> row_weights_;    // sum of a row's weights
};

// Mean of 1 - sim over neighbours in `order`, rows without entries left out. 0 for less than two.
double mean_adjacent_cost(const CsrMatrix& matrix, const WeightedJaccard& jaccard,
                          const Permutation& order);

}  // namespace spmmbench
