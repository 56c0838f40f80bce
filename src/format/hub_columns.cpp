#include "format/hub_columns.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "spmmbench/random.hpp"

namespace spmmbench {

HubColumns find_hub_columns(const CsrMatrix& matrix) {
  constexpr std::uint64_t kSample = 4096;
  constexpr double kLeastRows = 0.25;  // of all rows, that have a hub column
  constexpr double kLeastSeen = 3;     // in the sample: fewer may be chance
  HubColumns hubs;
  if (matrix.nnz() == 0) return hubs;
  const double mean_row = static_cast<double>(matrix.nnz()) / static_cast<double>(matrix.rows);
  const double least = kLeastRows / mean_row * kSample;
  if (least < kLeastSeen) return hubs;
  // Random places, since evenly spaced ones would meet the same few columns of rows that are alike.
  std::vector<std::int32_t> columns(kSample);
  for (std::uint64_t i = 0; i < kSample; ++i)
    columns[i] = matrix.col_idx[hash_position(0, i, 0) % static_cast<std::uint64_t>(matrix.nnz())];
  std::sort(columns.begin(), columns.end());
  for (auto first = columns.begin(); first != columns.end();) {
    const auto last = std::upper_bound(first, columns.end(), *first);
    const auto seen = static_cast<double>(last - first);
    if (seen >= least) {
      hubs.share += seen / kSample;
      ++hubs.count;
    }
    first = last;
  }
  return hubs;
}

}  // namespace spmmbench
