#include "format/wcsr_estimate.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace spmmbench {
namespace {

constexpr std::int64_t kGroupRows = 32;
constexpr std::int64_t kTile = WcsrShape{}.tile_columns;

using Columns = std::vector<std::int32_t>;

Columns distinct_columns(const CsrMatrix& matrix, const Permutation& row_order, std::int64_t first,
                         std::int64_t last) {
  Columns out;
  for (std::int64_t place = first; place < last; ++place) {
    const std::int64_t row = row_order.empty() ? place : row_order[place];
    out.insert(out.end(), matrix.col_idx.begin() + matrix.row_ptr[row],
               matrix.col_idx.begin() + matrix.row_ptr[row + 1]);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Of one group, as shares of its nonzeros. A taller window is the union of two lower ones.
WcsrEstimate measure(const CsrMatrix& matrix, const Permutation& row_order, std::int64_t first,
                     std::int64_t last, std::int64_t nnz) {
  std::vector<Columns> windows;
  for (std::int64_t from = first; from < last; from += kWcsrHeights[0])
    windows.push_back(
        distinct_columns(matrix, row_order, from, std::min(from + kWcsrHeights[0], last)));
  WcsrEstimate out;
  for (std::size_t h = 0; h < kWcsrHeights.size(); ++h) {
    if (h > 0) {
      std::vector<Columns> taller((windows.size() + 1) / 2);
      for (std::size_t w = 0; w < windows.size(); w += 2) {
        if (w + 1 == windows.size()) taller[w / 2] = std::move(windows[w]);
        else
          std::set_union(windows[w].begin(), windows[w].end(), windows[w + 1].begin(),
                         windows[w + 1].end(), std::back_inserter(taller[w / 2]));
      }
      windows = std::move(taller);
    }
    std::int64_t gathered = 0, stored = 0;
    for (const Columns& window : windows) {
      const auto distinct = static_cast<std::int64_t>(window.size());
      gathered += distinct;
      stored += (distinct + kTile - 1) / kTile * kTile;
    }
    out.gathered_share[h] = static_cast<double>(gathered) / static_cast<double>(nnz);
    out.stored_share[h] = static_cast<double>(stored) / static_cast<double>(nnz);
  }
  return out;
}

}  // namespace

WcsrEstimate estimate_wcsr(const CsrMatrix& matrix, const Permutation& row_order) {
  WcsrEstimate mean;
  if (matrix.nnz() == 0) return mean;
  const std::int64_t groups = (matrix.rows + kGroupRows - 1) / kGroupRows;
  const std::int64_t samples = std::clamp<std::int64_t>(groups / 40, 32, 96);
  std::vector<std::int64_t> ordered_ptr;  // row_ptr of the ordered matrix
  if (!row_order.empty()) {
    ordered_ptr.assign(matrix.rows + 1, 0);
    for (std::int64_t place = 0; place < matrix.rows; ++place)
      ordered_ptr[place + 1] = ordered_ptr[place] + matrix.row_length(row_order[place]);
  }
  const std::vector<std::int64_t>& row_ptr = row_order.empty() ? matrix.row_ptr : ordered_ptr;
  std::vector<WcsrEstimate> sampled(samples);
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t s = 0; s < samples; ++s) {
    const auto entry =
        static_cast<std::int64_t>((static_cast<double>(s) + 0.5) / static_cast<double>(samples) *
                                  static_cast<double>(matrix.nnz()));
    const std::int64_t place =
        std::upper_bound(row_ptr.begin(), row_ptr.end(), entry) - row_ptr.begin() - 1;
    const std::int64_t first = place / kGroupRows * kGroupRows;
    const std::int64_t last = std::min(first + kGroupRows, matrix.rows);
    sampled[s] = measure(matrix, row_order, first, last, row_ptr[last] - row_ptr[first]);
  }
  for (const WcsrEstimate& sample : sampled)
    for (std::size_t h = 0; h < kWcsrHeights.size(); ++h) {
      mean.gathered_share[h] += sample.gathered_share[h] / static_cast<double>(samples);
      mean.stored_share[h] += sample.stored_share[h] / static_cast<double>(samples);
    }
  return mean;
}

}  // namespace spmmbench
