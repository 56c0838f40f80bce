#pragma once
// The rules of the row order `match` (match.cpp), for the host and for the device, so that both
// give the same order.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#include "spmmbench/host_device.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench::match {

// The largest clusters.
enum class Height {
  all,      // 32 rows: the highest windows of any kernel
  by_need,  // 8 rows, and 32 only where rows resemble each other
};
// Of "match" and "match?rows=auto"; nothing for other reorderings.
std::optional<Height> height_of(std::string_view spec);

constexpr int kLevels = 5;     // clusters of 2^5 rows
constexpr int kLowLevels = 3;  // clusters of 2^3 rows
// Height::by_need joins more than kLowLevels where clusters of four rows have at most so many of
// the columns of pairs, in percent. Higher windows are then worth their registers: of 45 matrices
// those that gather less in them have at most 69, others at least 72, but for three with few
// nonzeros (docs/decisions/row-orders.md).
constexpr std::int64_t kAlikePercent = 70;
constexpr bool grows_on(std::int64_t columns_of_pairs, std::int64_t columns_of_fours) {
  return 100 * columns_of_fours <= kAlikePercent * columns_of_pairs;
}

// Height::by_need leaves kSampledFrom rows and more in natural order where they share almost
// nothing: so little of the columns of every step-th row and of its best partner is common to both,
// in percent. Graphs that are drawn at random have 3, of 79 matrices those of that size 17 and
// more; smaller ones below 5 gather 0.94 and more of natural order, which gains no time
// (docs/decisions/row-orders.md).
constexpr std::int32_t kSampledFrom = 1 << 17, kSampled = 1024;
constexpr std::uint64_t kSharesPercent = 5;
constexpr std::int32_t sample_step(std::int32_t rows) { return rows / kSampled; }
struct Sample {
  std::uint64_t shared = 0, columns = 0;  // shared: in units of 1 / kShareUnits

  static constexpr std::uint64_t kShareUnits = 1 << 16;
  constexpr bool gains() const { return 100 * shared >= kSharesPercent * kShareUnits * columns; }
};

// Each level looks for partners so often, for the clusters that have none yet. A second pass
// gathers 5 % fewer rows of B, a third less than 1 % (docs/decisions/row-orders.md).
constexpr int kPasses = 2;
constexpr int kPartners = 8;  // that a cluster remembers, the most similar ones
constexpr int kRounds = 6;    // of asking them, in each pass
// Columns of more rows tell little of any two of them and are not looked at: gathers stay
// (docs/decisions/row-orders.md), and such columns would be most of the work of graphs with hubs.
constexpr std::int32_t kMostOfColumn = 1024;
// Of a longer list of clusters only so many places are read, around the cluster that reads it.
constexpr std::int32_t kMostPlaces = 32;
// Of a cluster with more columns only so many are looked at, evenly spaced.
constexpr std::int32_t kMostColumns = 1024;

// What one column adds to the similarity of two clusters that have it: half where its list is not
// read to its end, since the column may then be missed elsewhere.
constexpr std::int32_t kWhole = 2, kHalf = 1;

// Places [begin, end) of a column's list that a cluster reads.
struct Part {
  std::int32_t begin, end, weight;
};
// `own`: how many clusters of the list come before the one that reads it.
SPMMBENCH_HOST_DEVICE constexpr Part part_of_list(std::int32_t length, std::int32_t own) {
  if (length <= kMostPlaces) return {0, length, kWhole};
  const std::int32_t first = own - kMostPlaces / 2, last = length - kMostPlaces;
  const std::int32_t begin = first < 0 ? 0 : first > last ? last : first;
  return {begin, begin + kMostPlaces, kHalf};
}

struct Partner {
  std::uint64_t rank = 0;
  std::int32_t cluster = -1;

  SPMMBENCH_HOST_DEVICE constexpr bool before(const Partner& other) const {
    return rank != other.rank ? rank > other.rank : cluster < other.cluster;
  }
};

// How cluster `own` ranks `other`: by the share of their columns that both have (Jaccard), and
// where shares are equal by a hash of the pair, so that both rank each other alike. `weight`: the
// sum over the columns of `own` that were looked at, `used` of `columns`.
SPMMBENCH_HOST_DEVICE inline Partner rank_partner(std::int32_t own, std::int32_t other,
                                                  std::int64_t weight, std::int64_t columns,
                                                  std::int64_t used, std::int64_t other_columns) {
  const std::int64_t scaled = used == columns ? weight : weight * columns / used;
  const std::int64_t shared = scaled < kWhole * other_columns ? scaled : kWhole * other_columns;
  const std::int64_t all = kWhole * (columns + other_columns) - shared;
  const float share = static_cast<float>(shared) / static_cast<float>(all);
  const std::uint64_t low = own < other ? own : other, high = own < other ? other : own;
  return {std::uint64_t{std::bit_cast<std::uint32_t>(share)} << 32 | mix64(low << 32 | high) >> 32,
          other};
}

// What a row adds to Sample::shared. `rank`: of its best partner.
SPMMBENCH_HOST_DEVICE inline std::uint64_t shared_with(std::uint64_t rank, std::int32_t columns) {
  const auto share = std::bit_cast<float>(static_cast<std::uint32_t>(rank >> 32));
  return static_cast<std::uint64_t>(share * static_cast<float>(Sample::kShareUnits)) *
         static_cast<std::uint64_t>(columns);
}

// Columns that are looked at, and which the i-th of them is.
SPMMBENCH_HOST_DEVICE constexpr std::int32_t used_columns(std::int32_t columns) {
  return columns < kMostColumns ? columns : kMostColumns;
}
SPMMBENCH_HOST_DEVICE constexpr std::int32_t used_column(std::int32_t i, std::int32_t columns,
                                                         std::int32_t used) {
  return static_cast<std::int32_t>(std::int64_t{i} * columns / used);
}

}  // namespace spmmbench::match
