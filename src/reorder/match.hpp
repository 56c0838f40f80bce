#pragma once
// The rules of the row order `match` (match.cpp), for the host and for the device, so that both
// give the same order.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#include "spmmbench/host_device.hpp"

namespace spmmbench::match {

// The largest clusters.
enum class Height {
  all,      // 32 rows: the highest windows of any kernel
  by_need,  // 8 rows, and 32 only where rows resemble each other
};
struct Form {
  Height height = Height::all;
  bool by_distance = false;  // rows are sorted once more (rim_distance.hpp)
};
// The form that the spec of a "match" asks for; nothing for other reorderings.
std::optional<Form> form_of(std::string_view spec);
// The order that a Form without by_distance gives.
const char* unsorted(Height height);

// Of this many rows and columns for each nonzero, tables with an entry for each are small beside
// what the order takes for nonzeros. Where more are empty, those that are not are matched on the
// host, and no kernel searches for that order: its products wait for the rows of C, not for
// gathers.
constexpr std::int64_t kMostRowsAndColumns = 4;
SPMMBENCH_HOST_DEVICE constexpr bool is_filled(double rows, double cols, double nnz) {
  return rows + cols <= kMostRowsAndColumns * nnz;
}

constexpr int kLevels = 5;     // clusters of 2^5 rows
constexpr int kLowLevels = 3;  // clusters of 2^3 rows
// Height::by_need joins more than kLowLevels where clusters of four rows have at most this many of
// the columns of pairs, in percent. Higher windows are then worth their registers: of 45 matrices
// ten have at most 71, and the others at least 75 (docs/decisions/row-orders.md).
constexpr std::int64_t kAlikePercent = 72;
constexpr bool grows_on(std::int64_t columns_of_pairs, std::int64_t columns_of_fours) {
  return 100 * columns_of_fours <= kAlikePercent * columns_of_pairs;
}

// Height::by_need first asks a sample of rows whether an order can gain: of kAskedRows rows and
// more or kAskedEntries nonzeros and more, where matching takes several times as long. It stays
// natural
//
// - where rows share too little with their best partners, in percent of the columns of both. Graphs
//   that are drawn at random have 2 to 3, one of weak communities 8, whose products gain no time;
//   of 79 matrices those of kAskedRows have 17 and more, smaller ones that gain 6 and more;
// - where the windows of sampled rows and their best partners gather nearly what natural ones do,
//   in percent of it: an order gathers 0.87 to 1.14 of that on 43 matrices, and kernels take none
//   that gains less than 6 % (docs/decisions/row-orders.md).
constexpr std::int32_t kAskedRows = 1 << 17, kSampled = 1024;
constexpr std::int64_t kAskedEntries = 1 << 18;
constexpr std::uint64_t kSharesPercent = 4, kSharesPercentOfLarge = 12, kMostPercent = 92;
constexpr bool asks_sample(std::int32_t rows, std::int64_t entries) {
  return rows >= kAskedRows || entries >= kAskedEntries;
}
constexpr std::int32_t sample_step(std::int32_t rows) {
  return rows <= kSampled ? 1 : rows / kSampled;
}
// Sums over sampled rows with nonzeros, in units of 1 / kUnits of a row's columns.
struct Sample {
  std::uint64_t shared = 0, columns = 0;   // columns: whole ones
  std::uint64_t natural = 0, matched = 0;  // that windows gather

  static constexpr std::uint64_t kUnits = 1 << 16;
  SPMMBENCH_HOST_DEVICE constexpr bool gains(std::int32_t rows) const {
    const std::uint64_t least = rows >= kAskedRows ? kSharesPercentOfLarge : kSharesPercent;
    return 100 * shared >= least * kUnits * columns && 100 * matched <= kMostPercent * natural;
  }
};
// Rows of a window, and this many of its nonzeros are looked up in the rows before their own.
constexpr int kWindowRows = 8, kTested = 128;
// The natural window of a row: the first of these rows that are not empty.
constexpr int kWindowReach = 32;
SPMMBENCH_HOST_DEVICE constexpr std::int64_t first_of_window(std::int32_t row) {
  return row / kWindowRows * kWindowRows;
}

// The rows of large matrices are numbered by their first columns (first_columns.hpp): those without
// a partner are then joined with similar ones, and long lists are read where their rows are
// similar. The sort takes 40 to 70 us, too much for the order of a smaller matrix
// (docs/decisions/row-orders.md).
constexpr std::int64_t kSortedEntries = 1 << 20;
constexpr bool sorts_rows(std::int64_t rows, std::int64_t entries) {
  return rows >= kAskedRows || entries >= kSortedEntries;
}

// The most similar clusters that one ranks, and hands on to the next level. One of few columns
// ranks fewer, so that what is known of all needs little memory beside the matrix.
constexpr int kNear = 16, kNearOfColumn = 2;
SPMMBENCH_HOST_DEVICE constexpr std::int32_t near_of(std::int32_t columns) {
  return columns < kNear / kNearOfColumn ? kNearOfColumn * columns : kNear;
}
// Columns of more rows tell little of any two of them and are not looked at: gathers stay
// (docs/decisions/row-orders.md), and such columns would be most of the work of graphs with hubs.
constexpr std::int32_t kMostOfColumn = 1024;
// If a list of rows is longer, a row reads only this many places of it, around its own. It reads
// more if it has few columns, which may all have long lists, or if few of its columns are looked
// at.
constexpr std::int32_t kMostPlaces = 64, kSomePlaces = 32, kFewPlaces = 16;
constexpr std::int32_t kFewColumns = 16, kSomeColumns = 64, kManyColumns = 128;
SPMMBENCH_HOST_DEVICE constexpr std::int32_t places_for(std::int32_t columns) {
  if (columns <= kFewColumns || columns > kManyColumns) return kMostPlaces;
  return columns <= kSomeColumns ? kFewPlaces : kSomePlaces;
}
// A row with many columns looks only at some, evenly spaced, so that it reads at most this many
// places and takes not much longer than others.
constexpr std::int32_t kMostPlacesOfAll = 1024;
constexpr std::int32_t kMostColumns = kMostPlacesOfAll / kFewPlaces;

// What one column adds to the similarity of two clusters that have it: half where its list is not
// read to its end, since the column may then be missed elsewhere.
constexpr std::int32_t kWhole = 2, kHalf = 1;

// Places [begin, end) of a column's list that a cluster reads.
struct Part {
  std::int32_t begin, end, weight;
};
// `own`: how many clusters of the list come before the one that reads it. `most`: as places_for
// says.
SPMMBENCH_HOST_DEVICE constexpr Part part_of_list(std::int32_t length, std::int32_t own,
                                                  std::int32_t most) {
  if (length <= most) return {0, length, kWhole};
  const std::int32_t first = own - most / 2, last = length - most;
  const std::int32_t begin = first < 0 ? 0 : first > last ? last : first;
  return {begin, begin + most, kHalf};
}

// weight * length / used. Most products have 32 bits, which are divided in a third of the time.
SPMMBENCH_HOST_DEVICE constexpr std::int32_t scaled_weight(std::int32_t weight, std::int32_t length,
                                                           std::int32_t used) {
  if (used == length) return weight;
  constexpr std::int32_t kShortLength = (1U << 31) / (kWhole * kMostColumns);
  if (length < kShortLength) return weight * length / used;
  return static_cast<std::int32_t>(std::int64_t{weight} * length / used);
}

// How cluster `own` ranks `other` of which it shares `shared` of `all` columns: by the share, and
// where shares are equal by how alike their numbers are: both rank each other alike, and 2 i and
// 2 i + 1 first. Never 0, and no two others have the same.
SPMMBENCH_HOST_DEVICE inline std::uint64_t rank_share(std::int32_t own, std::int32_t other,
                                                      std::int32_t shared, std::int32_t all) {
  const float share = static_cast<float>(shared) / static_cast<float>(all);
  return std::uint64_t{std::bit_cast<std::uint32_t>(share)} << 32 |
         ~static_cast<std::uint32_t>(own ^ other);
}
// `weight`: the sum over the columns of `own` that were looked at, `used` of `columns`.
SPMMBENCH_HOST_DEVICE inline std::uint64_t rank_partner(std::int32_t own, std::int32_t other,
                                                        std::int32_t weight, std::int32_t columns,
                                                        std::int32_t used,
                                                        std::int32_t other_columns) {
  constexpr std::int32_t kMostLength = 1 << 28;  // more columns share nothing with so few
  const std::int32_t length = other_columns < kMostLength ? other_columns : kMostLength;
  const std::int32_t own_length = columns < kMostLength ? columns : kMostLength;
  const std::int32_t scaled = scaled_weight(weight, own_length, used);
  const std::int32_t shared = scaled < kWhole * length ? scaled : kWhole * length;
  return rank_share(own, other, shared, kWhole * (own_length + length) - shared);
}
SPMMBENCH_HOST_DEVICE constexpr std::int32_t ranked_partner(std::int32_t own, std::uint64_t rank) {
  return own ^ static_cast<std::int32_t>(~static_cast<std::uint32_t>(rank));
}

// The columns of a cluster as a set of this many bits, one for each column: a bit may stand for
// several. Sets of 512 bits gather 1.003 of what these do, of 256 bits 1.010
// (docs/decisions/row-orders.md).
constexpr int kSketchBits = 1024, kSketchWords = kSketchBits / 32;
SPMMBENCH_HOST_DEVICE constexpr std::uint32_t sketch_bit(std::int32_t column) {
  constexpr int kUpper = std::bit_width(static_cast<unsigned>(kSketchBits)) - 1;
  // 2^32 over the golden ratio: the upper bits of the product differ most.
  return static_cast<std::uint32_t>(column) * 0x9E3779B9U >> (32 - kUpper);
}
// Bits of two sets: of each, and of both.
struct SketchBits {
  std::int32_t own, other, both;

  SPMMBENCH_HOST_DEVICE constexpr std::int32_t any() const { return own + other - both; }
  // Those of common columns: `both` has as many others as fall together by chance.
  SPMMBENCH_HOST_DEVICE constexpr std::int32_t common() const {
    if (any() >= kSketchBits) return both;
    const std::int32_t there = (kSketchBits * both - own * other) / (kSketchBits - any());
    const std::int32_t most = own < other ? own : other;
    return there < 0 ? 0 : there < most ? there : most;
  }
};
SPMMBENCH_HOST_DEVICE inline std::uint64_t rank_sketch(std::int32_t own, std::int32_t other,
                                                       const SketchBits& bits) {
  const std::int32_t common = bits.common();
  return rank_share(own, other, common, bits.own + bits.other - common);
}
// How many columns two clusters have together, about.
SPMMBENCH_HOST_DEVICE constexpr std::int32_t united_length(std::int32_t own, std::int32_t other,
                                                           const SketchBits& bits) {
  const std::int64_t all = std::int64_t{own} + other;
  const std::int64_t common = all * bits.common() / (bits.own + bits.other);
  const std::int64_t most = own < other ? own : other;
  return static_cast<std::int32_t>(all - (common < most ? common : most));
}
// A rank by the number of ways in which a cluster met `other`: never 0, and no two others have the
// same.
SPMMBENCH_HOST_DEVICE constexpr std::uint64_t rank_ways(std::int32_t own, std::int32_t other,
                                                        std::int32_t ways) {
  return std::uint64_t{static_cast<std::uint32_t>(ways)} << 32 |
         ~static_cast<std::uint32_t>(own ^ other);
}
// Who finds no partner meets others without one among those that it ranks and that these rank: the
// first kMet of them, and asks kFurther at most, no more than it had ranked.
constexpr int kMet = 32, kFurther = 8;

// Every cluster asks those that it ranks, the best first, and is taken by the first that has no
// better suitor. Who loses its place asks on. That ends the same way in any order of asking: it is
// the stable matching of all as those who ask and all as those who are asked (Gale and Shapley).
// Two that take each other are partners. Others form paths, each taken by the next, which are cut
// at some of them, and joined two by two from their ends.
constexpr std::int32_t kMostOfPath = 7;  // odd: the last of a part has a partner
SPMMBENCH_HOST_DEVICE constexpr bool is_cut(std::int32_t cluster) {
  constexpr std::uint32_t kOneOf = 8;
  return (static_cast<std::uint32_t>(cluster) * 0x9E3779B9U >> 16) % kOneOf == 0;
}
// The partner of one, or -1. taken_by(i) took i, suitor_of(i) is taken by i; -1: none.
template <class TakenBy, class SuitorOf>
SPMMBENCH_HOST_DEVICE inline std::int32_t partner_by_suits(std::int32_t own, TakenBy taken_by,
                                                           SuitorOf suitor_of) {
  constexpr std::int32_t kNone = -1;
  const std::int32_t suitor = suitor_of(own);
  std::int32_t next = taken_by(own);
  if (suitor != kNone && suitor == next) return next;
  const auto next_on_path = [&](std::int32_t i) { return is_cut(i) ? kNone : taken_by(i); };
  if (is_cut(own)) next = kNone;
  const std::int32_t first = next;
  std::int32_t to_end = 0;
  for (; next != kNone && to_end <= kMostOfPath; ++to_end) next = next_on_path(next);
  if (to_end > kMostOfPath) return kNone;
  if (to_end % 2 == 1) return first;
  return suitor != kNone && !is_cut(suitor) && to_end < kMostOfPath ? suitor : kNone;
}

// What a row adds to Sample::shared. `rank`: of its best partner, or 0.
SPMMBENCH_HOST_DEVICE inline std::uint64_t shared_with(std::uint64_t rank, std::int32_t columns) {
  const auto share = std::bit_cast<float>(static_cast<std::uint32_t>(rank >> 32));
  return static_cast<std::uint64_t>(share * static_cast<float>(Sample::kUnits)) *
         static_cast<std::uint64_t>(columns);
}
// What it adds for a window of `entries` nonzeros; of those tested this many are the first in their
// columns.
SPMMBENCH_HOST_DEVICE constexpr std::int32_t tested_of(std::int64_t entries) {
  return static_cast<std::int32_t>(entries < kTested ? entries : kTested);
}
SPMMBENCH_HOST_DEVICE constexpr std::int64_t tested_entry(std::int32_t i, std::int64_t entries) {
  return i * entries / tested_of(entries);
}
SPMMBENCH_HOST_DEVICE constexpr std::uint64_t gathered_by(std::int32_t firsts, std::int64_t entries,
                                                          std::int32_t columns) {
  return Sample::kUnits * static_cast<std::uint64_t>(firsts) /
         static_cast<std::uint64_t>(tested_of(entries)) * static_cast<std::uint64_t>(columns);
}

// Columns that are looked at, of whose lists at most this many places are read, and which the i-th
// of them is.
SPMMBENCH_HOST_DEVICE constexpr std::int32_t used_columns(std::int32_t columns, std::int32_t most) {
  return columns < kMostPlacesOfAll / most ? columns : kMostPlacesOfAll / most;
}
SPMMBENCH_HOST_DEVICE constexpr std::int32_t used_column(std::int32_t i, std::int32_t columns,
                                                         std::int32_t used) {
  return used == columns ? i : static_cast<std::int32_t>(std::int64_t{i} * columns / used);
}

}  // namespace spmmbench::match
