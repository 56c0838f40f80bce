#include "reorder/rsh_neighbors.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "spmmbench/random.hpp"

namespace spmmbench {
namespace {

// The `features` rarest columns of a row among those that another row has too. Scratch is reused.
std::span<const std::int32_t> rare_columns(const CsrMatrix& matrix, std::int64_t row, int features,
                                           const std::vector<std::int32_t>& counts,
                                           std::vector<std::int32_t>& scratch) {
  scratch.clear();
  for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e)
    if (counts[matrix.col_idx[e]] > 1) scratch.push_back(matrix.col_idx[e]);
  const auto take = std::min<std::size_t>(features, scratch.size());
  const auto rarer = [&](std::int32_t a, std::int32_t b) {
    return counts[a] != counts[b] ? counts[a] < counts[b] : a < b;
  };
  if (take < scratch.size())
    std::nth_element(scratch.begin(), scratch.begin() + take, scratch.end(), rarer);
  return std::span(scratch).first(take);
}

// Rows that have column j among their rare ones: at [ptr[j], ptr[j + 1]), ascending.
struct InvertedIndex {
  std::vector<std::int64_t> ptr;
  std::vector<std::int32_t> rows;

  std::span<const std::int32_t> rows_of(std::int32_t column) const {
    return std::span(rows).subspan(ptr[column], ptr[column + 1] - ptr[column]);
  }
};

// The rare columns of every row: row r's at [ptr[r], ptr[r + 1]), -1 where it has fewer.
struct RareColumns {
  std::vector<std::int64_t> ptr;
  std::vector<std::int32_t> columns;

  std::span<const std::int32_t> of_row(std::int64_t row) const {
    return std::span(columns).subspan(ptr[row], ptr[row + 1] - ptr[row]);
  }
};

RareColumns all_rare_columns(const CsrMatrix& matrix, int features,
                             const std::vector<std::int32_t>& counts) {
  RareColumns out;
  out.ptr.assign(matrix.rows + 1, 0);
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    out.ptr[row + 1] = out.ptr[row] + std::min<std::int64_t>(matrix.row_length(row), features);
  out.columns.assign(out.ptr.back(), -1);
#pragma omp parallel
  {
    std::vector<std::int32_t> scratch;
#pragma omp for schedule(dynamic, 4096)
    for (std::int64_t row = 0; row < matrix.rows; ++row) {
      const auto rare = rare_columns(matrix, row, features, counts, scratch);
      std::copy(rare.begin(), rare.end(), out.columns.begin() + out.ptr[row]);
    }
  }
  return out;
}

InvertedIndex invert(const RareColumns& rare, std::int64_t rows, std::int64_t cols) {
  InvertedIndex out;
  out.ptr.assign(cols + 2, 0);
  for (const std::int32_t column : rare.columns)
    if (column >= 0) ++out.ptr[column + 2];
  for (std::int64_t j = 0; j < cols; ++j) out.ptr[j + 2] += out.ptr[j + 1];
  out.rows.resize(out.ptr.back());
  // ptr[j + 1] is where column j's next row goes, and so its end once all are there.
  for (std::int64_t row = 0; row < rows; ++row)
    for (const std::int32_t column : rare.of_row(row))
      if (column >= 0) out.rows[out.ptr[column + 1]++] = static_cast<std::int32_t>(row);
  return out;
}

// The rows to compare one row with. One per thread.
class Candidates {
 public:
  explicit Candidates(std::int64_t rows) : shared_(rows, 0) {}

  void clear() {
    for (const std::int32_t row : rows_) shared_[row] = 0;
    rows_.clear();
  }
  void add(std::int32_t row) {
    if (shared_[row]++ == 0) rows_.push_back(row);
  }

  // Those that share most features with `row`, then the nearest, `most` at most, in any order;
  // without `row` itself. Valid until the next call.
  const std::vector<std::int32_t>& best(std::int32_t row, int most) {
    keys_.clear();
    for (const std::int32_t other : rows_)
      if (other != row) keys_.push_back(key(row, other));
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
  // Ascending: more shared features, a smaller distance, the row before rather than behind.
  std::uint64_t key(std::int32_t row, std::int32_t other) const {
    const std::uint64_t fewer = 0xFFFFU - shared_[other];
    const bool behind = other > row;
    const auto distance = static_cast<std::uint32_t>(behind ? other - row : row - other);
    return fewer << 32 | std::uint64_t{distance} << 1 | (behind ? 1U : 0U);
  }

  std::vector<std::uint16_t> shared_;  // per row
  std::vector<std::int32_t> rows_, best_;
  std::vector<std::uint64_t> keys_;
};

// Rows of a popular column: those next to `row` in the matrix, where natural orders keep relatives,
// and a quarter drawn from the whole list.
void add_candidates(std::span<const std::int32_t> list, std::int32_t row, int limit,
                    std::uint64_t seed, Candidates& out) {
  const auto size = static_cast<std::int64_t>(list.size());
  if (size <= limit) {
    for (const std::int32_t other : list) out.add(other);
    return;
  }
  const std::int64_t drawn = limit / 4, near = limit - drawn;
  const std::int64_t at = std::lower_bound(list.begin(), list.end(), row) - list.begin();
  const std::int64_t first = std::clamp<std::int64_t>(at - near / 2, 0, size - near);
  for (std::int64_t i = 0; i < near; ++i) out.add(list[first + i]);
  for (std::int64_t i = 0; i < drawn; ++i)
    out.add(list[hash_position(seed, row, i) % static_cast<std::uint64_t>(size)]);
}

}  // namespace

RshNeighbors find_neighbors(const CsrMatrix& matrix, const WeightedJaccard& jaccard,
                            const RshNeighborOptions& options) {
  const RareColumns rare = all_rare_columns(matrix, options.features, jaccard.column_counts());
  const InvertedIndex index = invert(rare, matrix.rows, matrix.cols);
  RshNeighbors out{options.k, std::vector<std::int32_t>(matrix.rows * options.k, -1),
                   std::vector<std::uint16_t>(matrix.rows * options.k, 0)};
#pragma omp parallel
  {
    Candidates candidates(matrix.rows);
    WeightedJaccard::Row one(jaccard);
    std::vector<std::pair<float, std::int32_t>> best;  // -similarity, row
#pragma omp for schedule(dynamic, 512)
    for (std::int64_t r = 0; r < matrix.rows; ++r) {
      const auto row = static_cast<std::int32_t>(r);
      candidates.clear();
      for (const std::int32_t column : rare.of_row(r))
        if (column >= 0)
          add_candidates(index.rows_of(column), row, options.candidates, options.seed, candidates);
      one.set(r);
      best.clear();
      for (const std::int32_t u : candidates.best(row, options.candidates))
        best.emplace_back(-one.similarity(u), u);
      const auto kept = std::min<std::size_t>(options.k, best.size());
      std::partial_sort(best.begin(), best.begin() + kept, best.end());
      for (std::size_t i = 0; i < kept; ++i) {
        out.row[r * options.k + i] = best[i].second;
        out.similarity[r * options.k + i] =
            static_cast<std::uint16_t>(-best[i].first * RshNeighbors::kScale + 0.5F);
      }
    }
  }
  return out;
}

}  // namespace spmmbench
