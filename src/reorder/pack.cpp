// Packs windows greedily. The first row of a window is the one that shares most columns with the
// window before; each further row shares most with the rows that are already in the window. Rows
// that share a column are found in the column's list of rows not yet taken.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "reorder/compact.hpp"
#include "reorder/graph.hpp"
#include "reorder/threads.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

const auto kWindow = integer_option("window", 8, 2, 64, "rows per window");
const auto kCandidates =
    integer_option("candidates", 64, 1, 1024, "rows taken from one column's list");

// The pattern of some rows, without the columns that only one of them has. `uses` must be 0 for
// every column, and is left so.
CsrMatrix shared_pattern(const CsrMatrix& matrix, std::span<const std::int32_t> rows,
                         std::vector<std::int32_t>& uses) {
  const auto for_each_column = [&](std::int32_t row, auto&& visit) {
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e)
      visit(uses[matrix.col_idx[e]]);
  };
  for (const std::int32_t row : rows) for_each_column(row, [](std::int32_t& count) { ++count; });
  CsrMatrix out;
  out.rows = static_cast<std::int64_t>(rows.size());
  out.row_ptr.reserve(rows.size() + 1);
  for (const std::int32_t row : rows) {
    for_each_column(row, [&](std::int32_t& count) {  // from now on minus the column's number
      if (count == 1) return;
      if (count > 1) count = static_cast<std::int32_t>(-++out.cols);
      out.col_idx.push_back(-count - 1);
    });
    out.row_ptr.push_back(static_cast<std::int64_t>(out.col_idx.size()));
  }
  for (const std::int32_t row : rows) for_each_column(row, [](std::int32_t& count) { count = 0; });
  return out;
}

// Packs the given rows of a matrix.
class Packing {
 public:
  Packing(const CsrMatrix& matrix, std::span<const std::int32_t> rows,
          std::vector<std::int32_t>& uses, int window_rows, int most)
      : pattern_(shared_pattern(matrix, rows, uses)),
        window_rows_(window_rows),
        most_(most),
        lists_(transpose_pattern(pattern_)),
        first_(lists_.ptr.begin(), lists_.ptr.end() - 1),
        window_of_(pattern_.cols, -1),
        rows_(pattern_.rows) {
    for (std::int64_t row = 0; row < pattern_.rows; ++row) {
      const auto length = static_cast<float>(matrix.row_length(rows[row]));
      rows_[row].scale = 1 / (length * length);
    }
  }

  // The order, as places in `rows`.
  Permutation order() {
    // Windows are chained until they have as many rows as the highest ones. Then the first row that
    // is left begins a new chain, so that an order that is already good keeps its locality.
    constexpr int kHighestWindow = 32;
    const int group_rows = std::max(1, kHighestWindow / window_rows_) * window_rows_;
    Permutation order;
    order.reserve(pattern_.rows);
    std::int32_t next = 0;
    for (std::int64_t place = 0; place < pattern_.rows; ++place) {
      if (place % group_rows == 0) clear();
      std::int32_t row;
      if (candidates_.empty()) {
        while (rows_[next].candidate == kTaken) ++next;
        row = next;
      } else {
        row = take_best();
      }
      if (place % window_rows_ == 0) clear();
      order.push_back(row);
      add(row, static_cast<std::int32_t>(place / window_rows_));
    }
    return order;
  }

 private:
  static constexpr std::int32_t kNone = -1, kTaken = -2;
  struct Row {
    std::int32_t candidate = kNone;  // its place among the candidates
    float scale;                     // 1 / length^2
  };
  struct Candidate {
    std::int32_t row;
    float shared;  // weighted number of columns that the window has too
    float value;   // shared^3 / length^2
  };

  void clear() {
    for (const Candidate& candidate : candidates_) rows_[candidate.row].candidate = kNone;
    candidates_.clear();
  }

  // Takes the row with the largest shared^1.5 / length; of equal ones, the first found. This lies
  // between the count, which favours long rows, and the ratio, which favours short ones.
  std::int32_t take_best() {
    std::size_t best = 0;
    for (std::size_t i = 1; i < candidates_.size(); ++i)
      if (candidates_[i].value > candidates_[best].value) best = i;
    const std::int32_t row = candidates_[best].row;
    candidates_[best] = candidates_.back();
    rows_[candidates_[best].row].candidate = static_cast<std::int32_t>(best);
    candidates_.pop_back();
    return row;
  }

  void add(std::int32_t row, std::int32_t window) {
    rows_[row].candidate = kTaken;
    for (std::int64_t e = pattern_.row_ptr[row]; e < pattern_.row_ptr[row + 1]; ++e) {
      const std::int32_t column = pattern_.col_idx[e];
      if (window_of_[column] == window) continue;
      window_of_[column] = window;
      share(column);
    }
  }

  // Counts a column for the first `most_` rows of its list that are not taken. Taken rows leave the
  // list when they are passed, so each is passed once.
  void share(std::int32_t column) {
    constexpr std::int64_t kAhead = 8;  // the rows lie far apart
    std::int32_t* const list = lists_.adjacent.data();
    const std::int64_t begin = first_[column], end = lists_.ptr[column + 1];
    found_.clear();
    // A long list is not read to its end. A row that is left out here may be found through other
    // columns, and then lacks this one; half the weight limits the difference.
    const float weight = end - begin > most_ ? 0.5F : 1;
    std::int64_t at = begin;
    for (; at < end && static_cast<int>(found_.size()) < most_; ++at) {
      __builtin_prefetch(&rows_[list[std::min(at + kAhead, end - 1)]]);
      const std::int32_t other = list[at];
      Row& row = rows_[other];
      if (row.candidate == kTaken) continue;
      found_.push_back(other);
      if (row.candidate == kNone) {
        row.candidate = static_cast<std::int32_t>(candidates_.size());
        candidates_.push_back({other, 0, 0});
      }
      Candidate& candidate = candidates_[row.candidate];
      candidate.shared += weight;
      candidate.value = candidate.shared * candidate.shared * candidate.shared * row.scale;
    }
    first_[column] = at - static_cast<std::int64_t>(found_.size());
    if (first_[column] != begin) std::copy(found_.begin(), found_.end(), list + first_[column]);
  }

  CsrMatrix pattern_;
  int window_rows_;
  int most_;
  Graph lists_;                          // each column's rows, ascending
  std::vector<std::int64_t> first_;      // where a column's list begins
  std::vector<std::int32_t> window_of_;  // per column: the last window that has it
  std::vector<Row> rows_;
  std::vector<Candidate> candidates_;
  std::vector<std::int32_t> found_;
};

Permutation pack(const CsrMatrix& matrix, int window_rows, int most) {
  // Rows are packed in parts of so many, several at a time. The tables of a part stay in a cache.
  constexpr std::int64_t kPartRows = 1 << 18;
  std::vector<std::int32_t> rows;  // that are not empty
  rows.reserve(matrix.rows);
  for (std::int32_t row = 0; row < matrix.rows; ++row)
    if (matrix.row_length(row) > 0) rows.push_back(row);
  const auto filled = static_cast<std::int64_t>(rows.size());
  Permutation order(filled);
  const std::int64_t parts = (filled + kPartRows - 1) / kPartRows;
  const std::int64_t uses_bytes = static_cast<std::int64_t>(sizeof(std::int32_t)) * matrix.cols;
  const std::int64_t threads =
      std::clamp<std::int64_t>(parts, 1, threads_for_tables(matrix, uses_bytes));
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    std::vector<std::int32_t> uses(matrix.cols, 0);
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t first = 0; first < filled; first += kPartRows) {
      const std::span part = std::span(rows).subspan(first, std::min(kPartRows, filled - first));
      auto place = order.begin() + first;
      for (const std::int32_t row : Packing(matrix, part, uses, window_rows, most).order())
        *place++ = part[row];
    }
  }
  for (std::int32_t row = 0; row < matrix.rows; ++row)
    if (matrix.row_length(row) == 0) order.push_back(row);
  return order;
}

class Pack final : public Reordering {
 public:
  std::string name() const override { return "pack"; }
  std::string summary() const override {
    return "windows filled greedily with the rows that share most columns";
  }
  std::vector<OptionSpec> options() const override { return {kWindow, kCandidates}; }
  Permutation compute(const CsrMatrix& matrix, const Options& options) const override {
    return order_compactly(matrix, [&](const CsrMatrix& pattern) {
      return pack(pattern, kWindow(options), kCandidates(options));
    });
  }
};

SPMMBENCH_REGISTER_REORDERING(Pack);

}  // namespace
}  // namespace spmmbench
