#pragma once
// Weighted Jaccard similarity of rows (RSH-SpMM, section 3.4): sim(r, u) is the sum of w_j over the
// common columns divided by the sum over all columns of r and u. w_j = d_j^-alpha, where d_j is the
// number of entries of column j.

#include <cstdint>
#include <vector>

#include "spmmbench/matrix.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench {

std::vector<std::int32_t> column_counts(const CsrMatrix& matrix);

class WeightedJaccard {
 public:
  // Keeps a reference to the matrix; `counts` are its column_counts().
  WeightedJaccard(const CsrMatrix& matrix, const std::vector<std::int32_t>& counts, double alpha);
  WeightedJaccard(const CsrMatrix& matrix, double alpha)
      : WeightedJaccard(matrix, column_counts(matrix), alpha) {}

  float similarity(std::int64_t r, std::int64_t u) const;  // in [0, 1]; 0 when a row is empty
  // The same for two rows whose common columns have the weight `common`.
  float similarity(std::int64_t r, std::int64_t u, float common) const;
  float weight(std::int32_t column) const { return weights_[column]; }

  // Compares one row with many others. The weights of its columns are written to a table, so that
  // another row is walked without a merge or a branch. The results are those of similarity(). Each
  // thread needs its own.
  class Row {
   public:
    explicit Row(const WeightedJaccard& jaccard)
        : jaccard_(jaccard), weights_(jaccard.matrix_.cols, 0) {}
    static std::int64_t bytes(const CsrMatrix& matrix) {
      return static_cast<std::int64_t>(sizeof(float)) * matrix.cols;
    }
    void set(std::int64_t row);
    float similarity(std::int64_t u) const;

   private:
    const WeightedJaccard& jaccard_;
    std::vector<float> weights_;  // per column; 0 where the row has none
    std::int64_t row_ = -1;
  };

  const CsrMatrix& matrix() const { return matrix_; }

 private:
  const CsrMatrix& matrix_;
  std::vector<float> weights_;      // per column
  std::vector<float> row_weights_;  // sum of a row's weights
};

// The mean of 1 - sim over neighbours in `order`, without the rows that have no entries. 0 for
// fewer than two rows.
double mean_adjacent_cost(const CsrMatrix& matrix, const WeightedJaccard& jaccard,
                          const Permutation& order);

}  // namespace spmmbench
