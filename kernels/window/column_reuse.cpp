#include "window/column_reuse.hpp"

#include <algorithm>

#include "core/parallel.hpp"

namespace spmmbench {
namespace {

double new_column_share(const CsrMatrix& matrix, const Permutation& row_order, int stretch,
                        const ReuseRule& rule) {
  std::vector<bool> seen(matrix.cols, false);
  SeenColumns columns;
  columns.begin();
  SeenColumns::Point now = {0, 0};
  for (std::int64_t place = start_of_stretch(stretch, matrix.rows);
       place < matrix.rows && now.distinct < rule.kept && now.entries < rule.entries;) {
    const std::int64_t end = std::min(place + rule.chunk_rows, matrix.rows);
    for (; place < end; ++place) {
      const std::int64_t row = row_order.empty() ? place : row_order[place];
      for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e) {
        now.distinct += seen[matrix.col_idx[e]] ? 0 : 1;
        seen[matrix.col_idx[e]] = true;
      }
      now.entries += matrix.row_length(row);
    }
    columns.add(rule, now);
  }
  return columns.new_share(now);
}

}  // namespace

ReuseRule reuse_rule(std::int64_t rows, std::int64_t nnz, std::int64_t kept) {
  constexpr std::int64_t kMostEntries = 1 << 18, kLeastStretches = 3;
  // Entries of a chunk: few where the cache keeps few, which one chunk must not fill.
  constexpr std::int64_t kLeastChunk = 1 << 5, kMostChunk = 1 << 12, kChunks = 8;
  const std::int64_t chunk = std::clamp(kept / kChunks, kLeastChunk, kMostChunk);
  const std::int64_t of_chunk = chunk * rows / std::max<std::int64_t>(nnz, 1);
  return {kept, std::min(kMostEntries, nnz / kLeastStretches),
          std::clamp<std::int64_t>(of_chunk, 1, kMostChunkRows)};
}

std::vector<double> new_column_shares(const CsrMatrix& matrix,
                                      const std::vector<const Permutation*>& row_orders,
                                      std::int64_t kept) {
  std::vector<double> shares(row_orders.size(), 0.0);
  if (matrix.nnz() == 0) return shares;
  const ReuseRule rule = reuse_rule(matrix.rows, matrix.nnz(), kept);
  std::vector<double> of_stretch(row_orders.size() * kReuseStretches);
  ExceptionTrap trap;
#pragma omp parallel for schedule(dynamic, 1)
  for (std::size_t i = 0; i < of_stretch.size(); ++i)
    trap.run([&] {
      of_stretch[i] = new_column_share(matrix, *row_orders[i / kReuseStretches],
                                       static_cast<int>(i % kReuseStretches), rule);
    });
  trap.rethrow();
  for (std::size_t i = 0; i < of_stretch.size(); ++i)
    shares[i / kReuseStretches] += of_stretch[i] / kReuseStretches;
  return shares;
}

}  // namespace spmmbench
