#include "reorder/rsh_neighbors.hpp"

#include <omp.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <utility>

#include "core/parallel.hpp"
#include "reorder/threads.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {
namespace {

// The rarest columns of every row. Candidates are found through them.
class RareColumns {
 public:
  RareColumns(const CsrMatrix& matrix, int features, const std::vector<std::int32_t>& counts)
      : matrix_(matrix), features_(features), place_(matrix.rows, -1) {
    std::int32_t longer = 0;
    for (std::int64_t row = 0; row < matrix.rows; ++row)
      if (matrix.row_length(row) > features) place_[row] = longer++;
    columns_.resize(std::int64_t{longer} * features);
    // A column that no other row has finds nothing, so it counts as the most popular one.
    const auto rarer = [&](std::int32_t a, std::int32_t b) {
      const bool alone_a = counts[a] < 2, alone_b = counts[b] < 2;
      if (alone_a != alone_b) return alone_b;
      return counts[a] != counts[b] ? counts[a] < counts[b] : a < b;
    };
    for_each_with_table(
        matrix.rows, 4096, omp_get_max_threads(), [] { return std::vector<std::int32_t>(); },
        [&](std::vector<std::int32_t>& row_columns, std::int64_t row) {
          if (place_[row] < 0) return;
          row_columns.assign(matrix.col_idx.begin() + matrix.row_ptr[row],
                             matrix.col_idx.begin() + matrix.row_ptr[row + 1]);
          std::nth_element(row_columns.begin(), row_columns.begin() + features, row_columns.end(),
                           rarer);
          std::copy_n(row_columns.begin(), features,
                      columns_.begin() + std::int64_t{place_[row]} * features);
        });
  }

  bool are_all(std::int64_t row) const { return place_[row] < 0; }
  std::span<const std::int32_t> of_row(std::int64_t row) const {
    if (are_all(row))
      return std::span(matrix_.col_idx).subspan(matrix_.row_ptr[row], matrix_.row_length(row));
    return std::span(columns_).subspan(std::int64_t{place_[row]} * features_, features_);
  }

 private:
  const CsrMatrix& matrix_;
  int features_;
  // -1 where a row has at most `features` columns: all of them are taken.
  std::vector<std::int32_t> place_;
  std::vector<std::int32_t> columns_;  // `features` of each longer row
};

// The rows that have column j among their rare ones, ascending: at [ptr[j], ptr[j + 1]). A column
// that only one row has gets no rows.
struct InvertedIndex {
  std::vector<std::int64_t> ptr;
  std::vector<std::int32_t> rows;
  std::vector<bool> complete;  // per column: every row that has it counts it among its rare ones

  std::span<const std::int32_t> rows_of(std::int32_t column) const {
    return std::span(rows).subspan(ptr[column], ptr[column + 1] - ptr[column]);
  }
};

InvertedIndex invert(const CsrMatrix& matrix, const RareColumns& rare,
                     const std::vector<std::int32_t>& counts) {
  InvertedIndex out;
  out.ptr.assign(matrix.cols + 2, 0);
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    for (const std::int32_t column : rare.of_row(row)) out.ptr[column + 2] += counts[column] > 1;
  for (std::int64_t j = 0; j < matrix.cols; ++j) out.ptr[j + 2] += out.ptr[j + 1];
  out.rows.resize(out.ptr.back());
  // While the lists are filled, the next row of column j goes to ptr[j + 1], which becomes the end
  // of its list.
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    for (const std::int32_t column : rare.of_row(row))
      if (counts[column] > 1) out.rows[out.ptr[column + 1]++] = static_cast<std::int32_t>(row);
  out.complete.resize(matrix.cols);
  for (std::int64_t j = 0; j < matrix.cols; ++j)
    out.complete[j] = counts[j] < 2 || out.ptr[j + 1] - out.ptr[j] == counts[j];
  return out;
}

// The rows to compare one row with: a hash table with open addressing, small enough for the L1
// cache. One per thread.
class Candidates {
 public:
  // Room for at most `most` rows.
  explicit Candidates(std::int64_t most)
      : table_(std::bit_ceil(static_cast<std::uint64_t>(2 * most))),
        shift_(32 - std::countr_zero(table_.size())) {}

  void clear() {
    for (const std::uint32_t slot : used_) table_[slot] = {};
    used_.clear();
  }
  // Notes that `row` has a feature of this weight.
  void add(std::int32_t row, float weight) {
    const std::uint32_t slot = find(row);
    if (table_[slot].row < 0) {
      table_[slot].row = row;
      used_.push_back(slot);
    }
    ++table_[slot].shared;
    table_[slot].common += weight;
  }
  // The weight of the features that an added row shares.
  float common(std::int32_t row) const { return table_[find(row)].common; }

  // At most `most` rows, in any order: those that share most features with `row`, and of equal ones
  // the nearest; never `row` itself. Valid until the next call.
  const std::vector<std::int32_t>& best(std::int32_t row, int most) {
    keys_.clear();
    for (const std::uint32_t slot : used_)
      if (table_[slot].row != row) keys_.push_back(key(row, table_[slot]));
    if (static_cast<int>(keys_.size()) > most) {
      std::nth_element(keys_.begin(), keys_.begin() + most, keys_.end());
      keys_.resize(most);
    }
    best_.clear();
    for (const std::uint64_t key : keys_) {
      const auto distance = static_cast<std::int32_t>(key >> 1 & 0x7FFFFFFFU);
      best_.push_back((key & 1U) != 0 ? row + distance : row - distance);
    }
    return best_;
  }

 private:
  struct Entry {
    std::int32_t row = -1;
    std::uint32_t shared = 0;  // features
    float common = 0;          // their weight
  };

  std::uint32_t find(std::int32_t row) const {
    const auto mask = static_cast<std::uint32_t>(table_.size() - 1);
    std::uint32_t slot = (static_cast<std::uint32_t>(row) * 0x9E3779B1U) >> shift_;  // Fibonacci
    while (table_[slot].row >= 0 && table_[slot].row != row) slot = (slot + 1) & mask;
    return slot;
  }

  // Smaller for more shared features, then for a smaller distance, then for the row before rather
  // than behind.
  static std::uint64_t key(std::int32_t row, const Entry& entry) {
    const std::uint64_t fewer = 0xFFFFFFFFU - entry.shared;
    const bool behind = entry.row > row;
    const auto distance = static_cast<std::uint32_t>(behind ? entry.row - row : row - entry.row);
    return fewer << 32 | std::uint64_t{distance} << 1 | (behind ? 1U : 0U);
  }

  std::vector<Entry> table_;
  int shift_;
  std::vector<std::uint32_t> used_;  // slots of table_
  std::vector<std::int32_t> best_;
  std::vector<std::uint64_t> keys_;
};

// Adds the rows of a column. Of a popular one it adds the rows nearest to `row` in the matrix,
// where natural orders keep similar rows, and draws a quarter from the whole list.
void add_candidates(std::span<const std::int32_t> list, std::int32_t row, float weight, int limit,
                    std::uint64_t seed, Candidates& out) {
  const auto size = static_cast<std::int64_t>(list.size());
  if (size <= limit) {
    for (const std::int32_t other : list) out.add(other, weight);
    return;
  }
  const std::int64_t drawn = limit / 4, near = limit - drawn;
  const std::int64_t at = std::lower_bound(list.begin(), list.end(), row) - list.begin();
  const std::int64_t first = std::clamp<std::int64_t>(at - near / 2, 0, size - near);
  for (std::int64_t i = 0; i < near; ++i) out.add(list[first + i], weight);
  for (std::int64_t i = 0; i < drawn; ++i)
    out.add(list[hash_position(seed, row, i) % static_cast<std::uint64_t>(size)], weight);
}

}  // namespace

RshNeighbors find_neighbors(const WeightedJaccard& jaccard, std::vector<std::int32_t> counts,
                            const RshNeighborOptions& options) {
  const CsrMatrix& matrix = jaccard.matrix();
  const RareColumns rare(matrix, options.features, counts);
  const InvertedIndex index = invert(matrix, rare, counts);
  counts = {};
  RshNeighbors out{options.k, std::vector<std::int32_t>(matrix.rows * options.k, -1),
                   std::vector<std::uint16_t>(matrix.rows * options.k, 0)};
  struct Tables {
    Candidates candidates;
    WeightedJaccard::Row one;
    std::vector<std::pair<float, std::int32_t>> best;  // -similarity, row
  };
  const auto make = [&] {
    return Tables{Candidates(std::int64_t{options.features} * options.candidates),
                  WeightedJaccard::Row(jaccard),
                  {}};
  };
  const auto find = [&](Tables& tables, std::int64_t r) {
    auto& [candidates, one, best] = tables;
    const auto row = static_cast<std::int32_t>(r);
    candidates.clear();
    // Where all rows of all columns were added, the common weights are known.
    bool complete = rare.are_all(r);
    for (const std::int32_t column : rare.of_row(r)) {
      const std::span<const std::int32_t> list = index.rows_of(column);
      add_candidates(list, row, jaccard.weight(column), options.candidates, options.seed,
                     candidates);
      complete =
          complete && index.complete[column] && static_cast<int>(list.size()) <= options.candidates;
    }
    if (!complete) one.set(r);
    best.clear();
    for (const std::int32_t u : candidates.best(row, options.candidates))
      best.emplace_back(
          -(complete ? jaccard.similarity(r, u, candidates.common(u)) : one.similarity(u)), u);
    const auto kept = std::min<std::size_t>(options.k, best.size());
    std::partial_sort(best.begin(), best.begin() + kept, best.end());
    for (std::size_t i = 0; i < kept; ++i) {
      out.row[r * options.k + i] = best[i].second;
      out.similarity[r * options.k + i] =
          static_cast<std::uint16_t>(std::lround(-best[i].first * RshNeighbors::kScale));
    }
  };
  for_each_with_table(matrix.rows, 512,
                      threads_for_tables(matrix, WeightedJaccard::Row::bytes(matrix)), make, find);
  return out;
}

}  // namespace spmmbench
