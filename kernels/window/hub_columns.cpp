#include "window/hub_columns.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace spmmbench {

HubSample hub_sample(std::int64_t rows, std::int64_t nnz) {
  constexpr double kLeastRows = 0.125;              // of all rows, that have a hub column
  constexpr double kWantedSeen = 16;                // draws of such a column
  constexpr double kLeastSeen = 12;                 // fewer may be chance
  constexpr double kFewest = 1024, kMost = 16'384;  // draws in all
  if (nnz == 0) return {};
  const double mean_row = static_cast<double>(nnz) / static_cast<double>(rows);
  const double draws = std::clamp(std::ceil(kWantedSeen / kLeastRows * mean_row), kFewest, kMost);
  const double least = kLeastRows / mean_row * draws;
  if (least < kLeastSeen) return {};
  return {static_cast<std::int64_t>(draws), least};
}

HubColumns find_hub_columns(const CsrMatrix& matrix) {
  HubColumns hubs;
  const HubSample sample = hub_sample(matrix.rows, matrix.nnz());
  if (sample.draws == 0) return hubs;
  std::vector<std::uint16_t> seen(std::size_t{1} << kHubCounterBits);
  for (std::int64_t i = 0; i < sample.draws; ++i)
    ++seen[hub_counter(matrix.col_idx[hub_draw(i, matrix.nnz())])];
  for (const std::uint16_t times : seen) {
    if (times < sample.least) continue;
    hubs.share += times / static_cast<double>(sample.draws);
    ++hubs.count;
  }
  return hubs;
}

}  // namespace spmmbench
