#include "reorder/similarity.hpp"

#include <algorithm>
#include <cmath>

namespace spmmbench {
namespace {

// Where one of two rows is more than this many times as long as the other, it is faster to search
// the long row for each column of the short one than to merge them.
constexpr std::int64_t kSearchRatio = 16;

}  // namespace

std::vector<std::int32_t> column_counts(const CsrMatrix& matrix) {
  std::vector<std::int32_t> counts(matrix.cols, 0);
  for (const std::int32_t column : matrix.col_idx) ++counts[column];
  return counts;
}

WeightedJaccard::WeightedJaccard(const CsrMatrix& matrix, const std::vector<std::int32_t>& counts,
                                 double alpha)
    : matrix_(matrix), weights_(matrix.cols), row_weights_(matrix.rows) {
#pragma omp parallel
  {
#pragma omp for
    for (std::int64_t j = 0; j < matrix.cols; ++j)
      weights_[j] = static_cast<float>(std::pow(std::max(counts[j], 1), -alpha));
#pragma omp for schedule(dynamic, 4096)
    for (std::int64_t row = 0; row < matrix.rows; ++row) {
      float sum = 0;
      for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e)
        sum += weights_[matrix.col_idx[e]];
      row_weights_[row] = sum;
    }
  }
}

float WeightedJaccard::similarity(std::int64_t r, std::int64_t u, float common) const {
  const float either = row_weights_[r] + row_weights_[u] - common;
  return either > 0 ? std::min(common / either, 1.0F) : 0;
}

float WeightedJaccard::similarity(std::int64_t r, std::int64_t u) const {
  if (matrix_.row_length(r) > matrix_.row_length(u)) std::swap(r, u);
  const std::int64_t length = matrix_.row_length(r);
  if (length == 0) return 0;
  const std::int32_t *a = matrix_.col_idx.data() + matrix_.row_ptr[r], *const a_end = a + length,
                     *b = matrix_.col_idx.data() + matrix_.row_ptr[u],
                     *const b_end = b + matrix_.row_length(u);
  float common = 0;
  if (matrix_.row_length(u) > kSearchRatio * length) {
    for (; a != a_end; ++a) {
      b = std::lower_bound(b, b_end, *a);
      if (b == b_end) break;
      if (*b == *a) common += weights_[*a];
    }
  } else {
    while (a != a_end && b != b_end) {
      if (*a == *b) common += weights_[*a];
      const std::int32_t x = *a, y = *b;
      a += x <= y;
      b += y <= x;
    }
  }
  return similarity(r, u, common);
}

void WeightedJaccard::Row::set(std::int64_t row) {
  const CsrMatrix& matrix = jaccard_.matrix_;
  if (row_ >= 0)
    for (std::int64_t e = matrix.row_ptr[row_]; e < matrix.row_ptr[row_ + 1]; ++e)
      weights_[matrix.col_idx[e]] = 0;
  row_ = row;
  for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e)
    weights_[matrix.col_idx[e]] = jaccard_.weights_[matrix.col_idx[e]];
}

float WeightedJaccard::Row::similarity(std::int64_t u) const {
  const CsrMatrix& matrix = jaccard_.matrix_;
  if (matrix.row_length(u) > kSearchRatio * matrix.row_length(row_))
    return jaccard_.similarity(row_, u);
  float common = 0;
  for (std::int64_t e = matrix.row_ptr[u]; e < matrix.row_ptr[u + 1]; ++e)
    common += weights_[matrix.col_idx[e]];
  return jaccard_.similarity(row_, u, common);
}

double mean_adjacent_cost(const CsrMatrix& matrix, const WeightedJaccard& jaccard,
                          const Permutation& order) {
  std::vector<std::int32_t> rows;
  for (const std::int32_t row : order)
    if (matrix.row_length(row) > 0) rows.push_back(row);
  const auto pairs = static_cast<std::int64_t>(rows.size()) - 1;
  if (pairs < 1) return 0;
  double cost = 0;
#pragma omp parallel for reduction(+ : cost) schedule(dynamic, 4096)
  for (std::int64_t i = 0; i < pairs; ++i) cost += 1 - jaccard.similarity(rows[i], rows[i + 1]);
  return cost / static_cast<double>(pairs);
}

}  // namespace spmmbench
