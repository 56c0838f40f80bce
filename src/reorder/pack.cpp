// Packs windows greedily. The first row of a window is the one that shares most columns with the
// previous window; each further row shares most with the rows in the window. Rows that share a
// column are found in the column's list of rows not yet taken.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/parallel.hpp"
#include "reorder/compact.hpp"
#include "reorder/graph.hpp"
#include "reorder/rcm.hpp"
#include "reorder/threads.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::pack {
namespace {

const auto kWindow = integer_option("window", 8, 2, 64, "rows per window");
const auto kCandidates =
    integer_option("candidates", 64, 1, 1024, "rows taken from one column's list");
const auto kStart = choice_option("start", "natural", {"natural", "rcm"},
                                  "order in which rows begin chains of windows");

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
    for_each_column(row, [&](std::int32_t& count) {  // from here on minus the column's number
      if (count == 1) return;
      if (count > 1) count = static_cast<std::int32_t>(-++out.cols);
      out.col_idx.push_back(-count - 1);
    });
    out.row_ptr.push_back(static_cast<std::int64_t>(out.col_idx.size()));
  }
  for (const std::int32_t row : rows) for_each_column(row, [](std::int32_t& count) { count = 0; });
  return out;
}

// The rows that share columns with the window. They lie one after another, so that the best is
// found fast; a row knows its place.
class Candidates {
 public:
  // The place of a row that is no candidate, and of one that is taken for good.
  static constexpr std::int32_t kNone = -1, kTaken = -2;
  struct Row {
    std::int32_t place = kNone;
    float scale;  // 1 / length^2
  };

  explicit Candidates(std::size_t rows)
      : rows_(rows), row_(rows + 1), shared_(rows + 1), scale_(rows + 1) {}

  Row& operator[](std::int32_t row) { return rows_[row]; }
  bool empty() const { return count_ == 0; }

  // One more column, of this weight, is shared by the first rows of `list` that are not taken: all,
  // or as many as fit in `found`, where they are written. Returns how many these are, and how many
  // of the list were read.
  std::pair<std::int64_t, std::int64_t> share(std::span<const std::int32_t> list, float weight,
                                              std::span<std::int32_t> found) {
    const auto length = std::ssize(list), most = std::ssize(found);
    std::int64_t count = 0, at = 0;
    std::int32_t candidates = count_;
    for (; at < length && count < most; ++at) {
      __builtin_prefetch(&rows_[list[std::min(at + kAhead, length - 1)]]);
      const std::int32_t row = list[at];
      Row& one = rows_[row];
      if (one.place == kTaken) continue;
      found[count++] = row;
      // Without a branch: whether a row is new is random.
      const bool is_new = one.place == kNone;
      const std::int32_t place = is_new ? candidates : one.place;
      one.place = place;
      row_[place] = row;
      scale_[place] = one.scale;
      shared_[place] += weight;
      candidates += is_new ? 1 : 0;
    }
    count_ = candidates;
    return {count, at};
  }

  void clear() {
    for (std::int32_t i = 0; i < count_; ++i) rows_[row_[i]].place = kNone;
    std::fill_n(shared_.begin(), count_, 0.0F);
    count_ = 0;
  }

  // Takes the row with the largest shared^1.5 / length; of equal ones, the first. This lies between
  // the count, which favours long rows, and the ratio, which favours short ones.
  std::int32_t take_best() {
    // As integers, positive numbers are in the same order, and the compiler makes vector code.
    const auto value = [this](std::int32_t i) {
      return std::bit_cast<std::int32_t>(shared_[i] * shared_[i] * shared_[i] * scale_[i]);
    };
    constexpr std::int32_t kBlock = 256;
    std::int32_t largest = -1, block = 0;
    for (std::int32_t first = 0; first < count_; first += kBlock) {
      std::int32_t here = -1;
      for (std::int32_t i = first; i < std::min(first + kBlock, count_); ++i)
        here = std::max(here, value(i));
      if (here > largest) largest = here, block = first;
    }
    std::int32_t best = block;
    while (value(best) != largest) ++best;
    const std::int32_t row = row_[best], last = --count_;
    row_[best] = row_[last];
    scale_[best] = scale_[last];
    shared_[best] = shared_[last];
    shared_[last] = 0;
    rows_[row_[best]].place = best;
    return row;
  }

 private:
  static constexpr std::int64_t kAhead = 8;  // rows of a list lie far apart

  std::vector<Row> rows_;
  std::int32_t count_ = 0;
  std::vector<std::int32_t> row_;  // by place; so are the next two
  std::vector<float> shared_;      // weighted number of columns; 0 from place count_ on
  std::vector<float> scale_;
};

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
        candidates_(pattern_.rows),
        found_(most) {
    for (std::int64_t row = 0; row < pattern_.rows; ++row) {
      const auto length = static_cast<float>(matrix.row_length(rows[row]));
      candidates_[static_cast<std::int32_t>(row)].scale = 1 / (length * length);
    }
  }

  // The order, as places in `rows`.
  Permutation order() {
    // Windows are chained until they have as many rows as the highest ones. Then the first row that
    // is left begins a new chain, so that the order keeps the locality of the one it starts with.
    constexpr int kHighestWindow = 32;
    const int group_rows = std::max(1, kHighestWindow / window_rows_) * window_rows_;
    Permutation order;
    order.reserve(pattern_.rows);
    std::int32_t next = 0;
    for (std::int64_t place = 0; place < pattern_.rows; ++place) {
      if (place % group_rows == 0) candidates_.clear();
      std::int32_t row;
      if (candidates_.empty()) {
        while (candidates_[next].place == Candidates::kTaken) ++next;
        row = next;
      } else {
        row = candidates_.take_best();
      }
      if (place % window_rows_ == 0) candidates_.clear();
      order.push_back(row);
      add(row, static_cast<std::int32_t>(place / window_rows_));
    }
    return order;
  }

 private:
  void add(std::int32_t row, std::int32_t window) {
    candidates_[row].place = Candidates::kTaken;
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
    std::int32_t* const list = lists_.adjacent.data();
    const std::int64_t begin = first_[column], end = lists_.ptr[column + 1];
    // A long list is not read to its end. A row that is left out here may be found through other
    // columns, and then lacks this one; half the weight limits the difference.
    const float weight = end - begin > most_ ? 0.5F : 1;
    const auto [count, read] = candidates_.share({list + begin, list + end}, weight, found_);
    first_[column] = begin + read - count;
    if (first_[column] != begin) std::copy_n(found_.begin(), count, list + first_[column]);
  }

  CsrMatrix pattern_;
  int window_rows_;
  int most_;
  Graph lists_;                          // each column's rows, ascending
  std::vector<std::int64_t> first_;      // where a column's list begins
  std::vector<std::int32_t> window_of_;  // per column: the last window that has it
  Candidates candidates_;
  std::vector<std::int32_t> found_;  // rows of one list
};

// `start`: the rows in the order in which they begin chains of windows, empty for natural.
Permutation pack(const CsrMatrix& matrix, const Permutation& start, int window_rows, int most) {
  // Rows are packed in parts of this many, several at a time. The tables of a part stay in a cache.
  constexpr std::int64_t kPartRows = 1 << 18;
  std::vector<std::int32_t> rows;  // that are not empty
  rows.reserve(matrix.rows);
  for (std::int32_t place = 0; place < matrix.rows; ++place) {
    const std::int32_t row = start.empty() ? place : start[place];
    if (matrix.row_length(row) > 0) rows.push_back(row);
  }
  const auto filled = static_cast<std::int64_t>(rows.size());
  Permutation order(filled);
  const std::int64_t parts = (filled + kPartRows - 1) / kPartRows;
  const std::int64_t uses_bytes = static_cast<std::int64_t>(sizeof(std::int32_t)) * matrix.cols;
  const std::int64_t threads =
      std::clamp<std::int64_t>(parts, 1, threads_for_tables(matrix, uses_bytes));
  for_each_with_table(
      parts, 1, static_cast<int>(threads),
      [&] { return std::vector<std::int32_t>(matrix.cols, 0); },
      [&](std::vector<std::int32_t>& uses, std::int64_t i) {
        const std::int64_t first = i * kPartRows;
        const std::span part = std::span(rows).subspan(first, std::min(kPartRows, filled - first));
        auto place = order.begin() + first;
        for (const std::int32_t row : Packing(matrix, part, uses, window_rows, most).order())
          *place++ = part[row];
      });
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
  std::vector<OptionSpec> options() const override { return {kWindow, kCandidates, kStart}; }
  Permutation compute(const CsrMatrix& matrix, const Options& options) const override {
    return order_compactly(matrix, [&](const CsrMatrix& pattern) {
      const Permutation start =
          kStart(options) == "rcm" ? reverse_cuthill_mckee(pattern) : Permutation{};
      return pack(pattern, start, kWindow(options), kCandidates(options));
    });
  }
};

SPMMBENCH_REGISTER_REORDERING(Pack);

}  // namespace
}  // namespace spmmbench::pack
