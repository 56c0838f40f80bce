#include "format/wcsr_estimate.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

namespace spmmbench {
namespace {

constexpr std::int64_t kGroupRows = 32;
constexpr std::int64_t kTile = WcsrShape{}.tile_columns;
constexpr std::int64_t kMostEntries = 1 << 16;   // looked up, of all groups
constexpr std::int64_t kWorthThreads = 1 << 17;  // entries or rows; fewer take less than a start
constexpr std::size_t kHeights = kWcsrHeights.size();
static_assert(kWcsrHeights[0] == 8 && kWcsrHeights[1] == 16 && kWcsrHeights[2] == kGroupRows);

std::size_t hash(std::int32_t column) {
  constexpr std::size_t kMultiplier = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  return static_cast<std::uint32_t>(column) * kMultiplier;
}

// For each column of a group the last of the group's four lowest windows that had it. Open
// addressing; columns beyond what was expected are not kept once three quarters are taken, which
// counts them too often.
class LastWindow {
 public:
  void reset(std::int64_t columns) {
    const std::size_t slots = std::bit_ceil(static_cast<std::size_t>(2 * columns + 32));
    column_.assign(slots, -1);
    window_.resize(slots);
    mask_ = slots - 1;
    free_ = slots / 4 * 3;
  }
  // The window at the last call with this column, -1 at the first; from now on `window`.
  int exchange(std::int32_t column, int window) {
    std::size_t at = hash(column) >> 32 & mask_;
    while (column_[at] != column && column_[at] >= 0) at = (at + 1) & mask_;
    const int before = column_[at] < 0 ? -1 : window_[at];
    if (before < 0 && free_ == 0) return -1;
    free_ -= before < 0 ? 1 : 0;
    column_[at] = column;
    window_[at] = static_cast<std::int8_t>(window);
    return before;
  }

 private:
  std::vector<std::int32_t> column_;
  std::vector<std::int8_t> window_;
  std::size_t mask_ = 0;
  std::size_t free_ = 0;
};

// Of one group, as shares of its nonzeros. Window w of 8 rows lies in window w / 2 of 16. Of a
// group with more than `most` entries only every step-th column is counted, those of the lowest
// hashes.
WcsrEstimate measure(const CsrMatrix& matrix, const Permutation& row_order, std::int64_t first,
                     std::int64_t last, std::int64_t nnz, std::int64_t most,
                     LastWindow& last_window) {
  const std::int64_t step = (nnz + most - 1) / most;
  std::array<std::array<std::int64_t, 4>, kHeights> distinct{};  // by height and window
  last_window.reset(nnz / step);
  for (std::int64_t place = first; place < last; ++place) {
    const std::int64_t row = row_order.empty() ? place : row_order[place];
    const auto window = static_cast<int>((place - first) / kWcsrHeights[0]);
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e) {
      const std::int32_t column = matrix.col_idx[e];
      if ((hash(column) >> 40) * static_cast<std::size_t>(step) >= std::size_t{1} << 24) continue;
      const int before = last_window.exchange(column, window);
      for (std::size_t h = 0; h < kHeights; ++h)
        distinct[h][window >> h] += before < 0 || before >> h != window >> h;
    }
  }
  WcsrEstimate out;
  for (std::size_t h = 0; h < kHeights; ++h)
    for (const std::int64_t counted : distinct[h]) {
      const std::int64_t columns = counted * step;
      out.gathered_share[h] += static_cast<double>(columns) / static_cast<double>(nnz);
      out.stored_share[h] +=
          static_cast<double>((columns + kTile - 1) / kTile * kTile) / static_cast<double>(nnz);
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
#pragma omp parallel for schedule(static) if (matrix.rows > kWorthThreads)
    for (std::int64_t place = 0; place < matrix.rows; ++place)
      ordered_ptr[place + 1] = matrix.row_length(row_order[place]);
    std::partial_sum(ordered_ptr.begin(), ordered_ptr.end(), ordered_ptr.begin());
  }
  const std::vector<std::int64_t>& row_ptr = row_order.empty() ? matrix.row_ptr : ordered_ptr;
  // At evenly spaced nonzeros: a group with many of them is drawn more than once, and counts so.
  std::vector<std::int64_t> drawn(samples);
  std::int64_t entries = 0;
  const auto last_place = [&](std::int64_t group) {
    return std::min((group + 1) * kGroupRows, matrix.rows);
  };
  for (std::int64_t s = 0; s < samples; ++s) {
    const auto entry =
        static_cast<std::int64_t>((static_cast<double>(s) + 0.5) / static_cast<double>(samples) *
                                  static_cast<double>(matrix.nnz()));
    const std::int64_t place =
        std::upper_bound(row_ptr.begin(), row_ptr.end(), entry) - row_ptr.begin() - 1;
    drawn[s] = place / kGroupRows;
    entries += row_ptr[last_place(drawn[s])] - row_ptr[drawn[s] * kGroupRows];
  }
  std::vector<WcsrEstimate> sampled(samples);
#pragma omp parallel if (entries > kWorthThreads)
  {
    LastWindow last_window;
#pragma omp for schedule(dynamic)
    for (std::int64_t s = 0; s < samples; ++s) {
      if (s > 0 && drawn[s] == drawn[s - 1]) continue;
      const std::int64_t first = drawn[s] * kGroupRows, last = last_place(drawn[s]);
      sampled[s] = measure(matrix, row_order, first, last, row_ptr[last] - row_ptr[first],
                           kMostEntries / samples, last_window);
    }
  }
  for (std::int64_t s = 0; s < samples; ++s) {
    if (s > 0 && drawn[s] == drawn[s - 1]) sampled[s] = sampled[s - 1];
    for (std::size_t h = 0; h < kHeights; ++h) {
      mean.gathered_share[h] += sampled[s].gathered_share[h] / static_cast<double>(samples);
      mean.stored_share[h] += sampled[s].stored_share[h] / static_cast<double>(samples);
    }
  }
  return mean;
}

double row_length_variation(const CsrMatrix& matrix) {
  if (matrix.nnz() == 0) return 0;
  const double mean = static_cast<double>(matrix.nnz()) / static_cast<double>(matrix.rows);
  double squares = 0;
#pragma omp parallel for reduction(+ : squares) schedule(static) if (matrix.rows > 1 << 20)
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    const double difference = static_cast<double>(matrix.row_length(row)) - mean;
    squares += difference * difference;
  }
  return std::sqrt(squares / static_cast<double>(matrix.rows)) / mean;
}

}  // namespace spmmbench
