#include "format/wcsr_estimate.hpp"

#include <algorithm>
#include <vector>

namespace spmmbench {
namespace {

constexpr std::int64_t kGroupRows = 32;
constexpr std::int64_t kTile = WcsrShape{}.tile_columns;

class Sampler {
 public:
  Sampler(const CsrMatrix& matrix, const Permutation& row_order)
      : matrix_(matrix), row_order_(row_order) {}

  void add_group(std::int64_t group, WcsrEstimate& sum) {
    const std::int64_t first = group * kGroupRows;
    const std::int64_t last = std::min(first + kGroupRows, matrix_.rows);
    std::int64_t nnz = 0;
    for (std::int64_t place = first; place < last; ++place) nnz += matrix_.row_length(row(place));
    for (std::size_t h = 0; h < kWcsrHeights.size(); ++h) {
      std::int64_t gathered = 0, stored = 0;
      for (std::int64_t from = first; from < last; from += kWcsrHeights[h]) {
        const std::int64_t distinct =
            distinct_columns(from, std::min(from + kWcsrHeights[h], last));
        gathered += distinct;
        stored += (distinct + kTile - 1) / kTile * kTile;
      }
      sum.gathered_share[h] += static_cast<double>(gathered) / static_cast<double>(nnz);
      sum.stored_share[h] += static_cast<double>(stored) / static_cast<double>(nnz);
    }
  }

 private:
  std::int64_t row(std::int64_t place) const {
    return row_order_.empty() ? place : row_order_[place];
  }

  std::int64_t distinct_columns(std::int64_t first, std::int64_t last) {
    columns_.clear();
    for (std::int64_t place = first; place < last; ++place) {
      const auto at = matrix_.col_idx.begin();
      columns_.insert(columns_.end(), at + matrix_.row_ptr[row(place)],
                      at + matrix_.row_ptr[row(place) + 1]);
    }
    std::sort(columns_.begin(), columns_.end());
    return std::unique(columns_.begin(), columns_.end()) - columns_.begin();
  }

  const CsrMatrix& matrix_;
  const Permutation& row_order_;
  std::vector<std::int32_t> columns_;
};

}  // namespace

WcsrEstimate estimate_wcsr(const CsrMatrix& matrix, const Permutation& row_order) {
  WcsrEstimate sum;
  if (matrix.nnz() == 0) return sum;
  const std::int64_t groups = (matrix.rows + kGroupRows - 1) / kGroupRows;
  const std::int64_t samples = std::clamp<std::int64_t>(groups / 20, 32, 256);
  std::vector<std::int64_t> ordered_ptr;  // row_ptr of the ordered matrix
  if (!row_order.empty()) {
    ordered_ptr.assign(matrix.rows + 1, 0);
    for (std::int64_t place = 0; place < matrix.rows; ++place)
      ordered_ptr[place + 1] = ordered_ptr[place] + matrix.row_length(row_order[place]);
  }
  const std::vector<std::int64_t>& row_ptr = row_order.empty() ? matrix.row_ptr : ordered_ptr;
  Sampler sampler(matrix, row_order);
  for (std::int64_t s = 0; s < samples; ++s) {
    const auto entry =
        static_cast<std::int64_t>((static_cast<double>(s) + 0.5) / static_cast<double>(samples) *
                                  static_cast<double>(matrix.nnz()));
    const std::int64_t place =
        std::upper_bound(row_ptr.begin(), row_ptr.end(), entry) - row_ptr.begin() - 1;
    sampler.add_group(place / kGroupRows, sum);
  }
  for (std::size_t h = 0; h < kWcsrHeights.size(); ++h) {
    sum.gathered_share[h] /= static_cast<double>(samples);
    sum.stored_share[h] /= static_cast<double>(samples);
  }
  return sum;
}

}  // namespace spmmbench
