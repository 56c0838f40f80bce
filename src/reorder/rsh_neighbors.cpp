#include "reorder/rsh_neighbors.hpp"

#include <algorithm>
#include <span>
#include <tuple>
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
};

InvertedIndex invert(const CsrMatrix& matrix, int features,
                     const std::vector<std::int32_t>& counts) {
  InvertedIndex out;
  out.ptr.assign(matrix.cols + 1, 0);
  std::vector<std::int32_t> chosen(matrix.rows * features, -1);
#pragma omp parallel
  {
    std::vector<std::int32_t> scratch;
#pragma omp for schedule(dynamic, 4096)
    for (std::int64_t row = 0; row < matrix.rows; ++row) {
      const auto rare = rare_columns(matrix, row, features, counts, scratch);
      std::copy(rare.begin(), rare.end(), chosen.begin() + row * features);
    }
  }
  for (const std::int32_t column : chosen)
    if (column >= 0) ++out.ptr[column + 1];
  for (std::int64_t j = 0; j < matrix.cols; ++j) out.ptr[j + 1] += out.ptr[j];
  out.rows.resize(out.ptr.back());
  std::vector<std::int64_t> cursor(out.ptr.begin(), out.ptr.end() - 1);
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i] >= 0)
      out.rows[cursor[chosen[i]]++] =
          static_cast<std::int32_t>(i / static_cast<std::size_t>(features));
  return out;
}

// Rows of a popular column: those next to `row` in the matrix, where natural orders keep relatives,
// and a quarter drawn from the whole list.
void add_candidates(std::span<const std::int32_t> list, std::int32_t row, int limit,
                    std::uint64_t seed, std::vector<std::int32_t>& out) {
  const auto size = static_cast<std::int64_t>(list.size());
  if (size <= limit) {
    out.insert(out.end(), list.begin(), list.end());
    return;
  }
  const std::int64_t drawn = limit / 4, near = limit - drawn;
  const std::int64_t at = std::lower_bound(list.begin(), list.end(), row) - list.begin();
  const std::int64_t first = std::clamp<std::int64_t>(at - near / 2, 0, size - near);
  out.insert(out.end(), list.begin() + first, list.begin() + first + near);
  for (std::int64_t i = 0; i < drawn; ++i)
    out.push_back(list[hash_position(seed, row, i) % static_cast<std::uint64_t>(size)]);
}

}  // namespace

RshNeighbors find_neighbors(const CsrMatrix& matrix, const WeightedJaccard& jaccard,
                            const RshNeighborOptions& options) {
  const InvertedIndex index = invert(matrix, options.features, jaccard.column_counts());
  RshNeighbors out{options.k, std::vector<std::int32_t>(matrix.rows * options.k, -1),
                   std::vector<std::uint16_t>(matrix.rows * options.k, 0)};
#pragma omp parallel
  {
    std::vector<std::int32_t> scratch, rows;
    std::vector<std::tuple<std::int32_t, std::int64_t, std::int32_t>> candidates;
    std::vector<std::pair<float, std::int32_t>> best;  // -similarity, row
#pragma omp for schedule(dynamic, 512)
    for (std::int64_t r = 0; r < matrix.rows; ++r) {
      rows.clear();
      for (const std::int32_t j :
           rare_columns(matrix, r, options.features, jaccard.column_counts(), scratch))
        add_candidates(std::span(index.rows).subspan(index.ptr[j], index.ptr[j + 1] - index.ptr[j]),
                       static_cast<std::int32_t>(r), options.candidates, options.seed, rows);
      std::sort(rows.begin(), rows.end());
      candidates.clear();  // -shared features, distance, row
      for (std::size_t i = 0, j = 0; i < rows.size(); i = j) {
        while (j < rows.size() && rows[j] == rows[i]) ++j;
        if (rows[i] != r)
          candidates.emplace_back(-static_cast<std::int32_t>(j - i), std::abs(rows[i] - r),
                                  rows[i]);
      }
      if (static_cast<int>(candidates.size()) > options.candidates) {
        std::nth_element(candidates.begin(), candidates.begin() + options.candidates,
                         candidates.end());
        candidates.resize(options.candidates);
      }
      best.clear();
      for (const auto& [shared, distance, u] : candidates)
        best.emplace_back(-jaccard.similarity(r, u), u);
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
