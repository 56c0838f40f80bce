#include "format/hub_columns.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "spmmbench/random.hpp"

namespace spmmbench {

double hub_column_share(const CsrMatrix& matrix) {
  constexpr std::uint64_t kSample = 4096;
  constexpr double kLeastRows = 0.25;  // of all rows, that have a hub column
  constexpr double kLeastSeen = 4;     // in the sample: fewer may be chance
  if (matrix.nnz() == 0) return 0;
  // Random places, since evenly spaced ones would meet the same few columns of rows that are alike.
  std::vector<std::int32_t> columns(kSample);
  for (std::uint64_t i = 0; i < kSample; ++i)
    columns[i] = matrix.col_idx[hash_position(0, i, 0) % static_cast<std::uint64_t>(matrix.nnz())];
  std::sort(columns.begin(), columns.end());
  const double mean_row = static_cast<double>(matrix.nnz()) / static_cast<double>(matrix.rows);
  const double least = std::max(kLeastSeen, kLeastRows / mean_row * kSample);
  std::size_t in_hubs = 0;
  for (auto first = columns.begin(); first != columns.end();) {
    const auto last = std::upper_bound(first, columns.end(), *first);
    const auto seen = static_cast<std::size_t>(last - first);
    if (static_cast<double>(seen) >= least) in_hubs += seen;
    first = last;
  }
  return static_cast<double>(in_hubs) / kSample;
}

}  // namespace spmmbench
