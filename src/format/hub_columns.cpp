#include "format/hub_columns.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "spmmbench/random.hpp"

namespace spmmbench {
namespace {

// Columns share a counter by chance. With one draw for each counter or fewer, twelve hardly ever
// meet in one, and hubs are drawn at least as often.
constexpr int kCounterBits = 14;
std::size_t counter_of(std::int32_t column) {
  constexpr std::uint32_t kGolden = 0x9E3779B9;  // 2^32 / golden ratio
  return static_cast<std::uint32_t>(column) * kGolden >> (32 - kCounterBits);
}

}  // namespace

HubColumns find_hub_columns(const CsrMatrix& matrix) {
  constexpr double kLeastRows = 0.25;               // of all rows, that have a hub column
  constexpr double kWantedSeen = 16;                // draws of such a column
  constexpr double kLeastSeen = 12;                 // fewer may be chance
  constexpr double kFewest = 1024, kMost = 16'384;  // draws in all
  HubColumns hubs;
  if (matrix.nnz() == 0) return hubs;
  const double mean_row = static_cast<double>(matrix.nnz()) / static_cast<double>(matrix.rows);
  const double draws = std::clamp(std::ceil(kWantedSeen / kLeastRows * mean_row), kFewest, kMost);
  const double least = kLeastRows / mean_row * draws;
  if (least < kLeastSeen) return hubs;
  // Random places, since evenly spaced ones would meet the same few columns of rows that are alike.
  std::vector<std::uint16_t> seen(std::size_t{1} << kCounterBits);
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(draws); ++i) {
    const std::uint64_t place = hash_position(0, i, 0) % static_cast<std::uint64_t>(matrix.nnz());
    ++seen[counter_of(matrix.col_idx[place])];
  }
  for (const std::uint16_t times : seen) {
    if (times < least) continue;
    hubs.share += times / draws;
    ++hubs.count;
  }
  return hubs;
}

}  // namespace spmmbench
