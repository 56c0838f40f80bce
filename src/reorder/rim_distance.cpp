#include "reorder/rim_distance.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "reorder/graph.hpp"

namespace spmmbench::rim {
namespace {

constexpr std::int32_t kNone = -1;

struct Distances {
  std::vector<std::int32_t> of_row;  // or kNone
  std::vector<std::int32_t> last;    // rows
  Reached reached;
};

// `lists`: the rows of each column.
Distances distances_from(const CsrMatrix& matrix, const Graph& lists, std::int32_t root) {
  Distances out;
  out.of_row.assign(matrix.rows, kNone);
  out.of_row[root] = 0;
  std::vector<bool> has_column(matrix.cols, false);
  std::vector<std::int32_t> next = {root};
  for (; !next.empty() && out.reached.distances < kMostDistances; ++out.reached.distances) {
    out.last.swap(next);
    next.clear();
    out.reached.rows += std::ssize(out.last);
    for (const std::int32_t row : out.last)
      for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e) {
        const std::int32_t column = matrix.col_idx[e];
        if (has_column[column]) continue;
        has_column[column] = true;
        for (const std::int32_t other : lists.neighbors(column)) {
          if (out.of_row[other] != kNone) continue;
          out.of_row[other] = out.reached.distances + 1;
          next.push_back(other);
        }
      }
  }
  for (const std::int32_t row : next) out.of_row[row] = kNone;
  return out;
}

}  // namespace

Permutation sort_by_distance(const CsrMatrix& matrix, const Permutation& order) {
  Permutation out(matrix.rows);
  std::iota(out.begin(), out.end(), 0);
  if (matrix.nnz() == 0) return out;
  const Graph lists = transpose_pattern(matrix);
  const auto middle = std::ranges::upper_bound(matrix.row_ptr, matrix.nnz() / 2);
  const auto first = static_cast<std::int32_t>(middle - matrix.row_ptr.begin() - 1);
  const Distances from_middle = distances_from(matrix, lists, first);
  const Distances from_rim =
      distances_from(matrix, lists, *std::ranges::min_element(from_middle.last));
  if (!from_rim.reached.sorts(matrix.rows)) return out;
  const std::int64_t clusters = matrix.rows / kClusterRows;
  std::vector<std::int32_t> distance(clusters, kMostDistances), sorted(clusters);
  for (std::int64_t i = 0; i < clusters * kClusterRows; ++i) {
    const std::int32_t own = from_rim.of_row[order[i]];
    std::int32_t& least = distance[i / kClusterRows];
    if (own != kNone) least = std::min(least, own);
  }
  std::iota(sorted.begin(), sorted.end(), 0);
  std::ranges::stable_sort(sorted, {}, [&](std::int32_t i) { return distance[i]; });
  out = order;
  for (std::int64_t i = 0; i < clusters; ++i)
    std::copy_n(order.begin() + std::int64_t{sorted[i]} * kClusterRows, kClusterRows,
                out.begin() + i * kClusterRows);
  return out;
}

}  // namespace spmmbench::rim
