#pragma once
// What a survey on the device counts, for the host and for kernels that go on from there.

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "core/row_lengths.hpp"
#include "gpu/signal.hpp"
#include "row_order/shared_orders.hpp"
#include "spmmbench/host_device.hpp"
#include "window/wcsr_heights.hpp"

namespace spmmbench::window {

constexpr int kGroupRows = 32;      // a group is a window of the largest height
constexpr int kWindowsOfGroup = 7;  // of a group's counts
constexpr int kCountsOfGroup = std::tuple_size_v<GroupCounts>;
static_assert(kGroupRows == kWcsrHeights.back() && kCountsOfGroup == kWindowsOfGroup + 1);

// The first window of a height among a group's counts, and how many there are.
SPMMBENCH_HOST_DEVICE constexpr int first_of_height(int index) {
  return index == 0 ? 0 : index == 1 ? 4 : 6;
}
SPMMBENCH_HOST_DEVICE constexpr int windows_of_height(int index) { return 4 >> index; }

// All groups are counted where there are no more, with no more nonzeros: it takes less time than a
// first pass of the build and the wait for it.
constexpr std::int64_t kMostInAll = 512, kMostEntriesInAll = std::int64_t{1} << 22;
// So large a group would keep its CTA busy far longer than that. Its windows are shared: in natural
// order by the samples in it, in others by one CTA for each kEntriesOfShare nonzeros. Of 64 rows of
// 20,000 that saves 2.0 of 4.7 ms (H200). The limits were not fitted.
constexpr std::int64_t kMostEntriesOfGroup = 1 << 17, kEntriesOfShare = 1 << 15;
// In an order by length the first group may have most of A, and the next ones much: this many CTAs
// share a window of these.
constexpr int kSharesOfFirst = 32, kSharesOfNext = 4, kNextGroups = 15;
constexpr int kMostShares = kSharesOfFirst - 1 + kNextGroups * (kSharesOfNext - 1);
// Where all groups are counted in natural order, spare CTAs find the long ones and share them. A
// share has this many nonzeros at least. The limits were not fitted.
constexpr int kMostSpare = 24;
constexpr std::int32_t kLeastOfSpare = 1 << 13;
static_assert(kMostSpare <= kMostShares);

struct SurveyCounts {
  std::uint32_t signal;                            // once all the rest is there
  alignas(16) std::int64_t lengths[kSampledRows];  // of rows_at_nonzeros
  std::int32_t groups[kSampledRows];               // of these rows
  std::int32_t empty, sampled;                     // rows of the sample of share_of_empty_rows
  std::int32_t group_of_spare[kMostSpare];         // that a spare CTA shares; -1: none
  // The counts of each CTA of a grid.
  alignas(16) std::int32_t counts[(kMostInAll + kMostShares) * kCountsOfGroup];

  // With the counts of this many CTAs.
  SPMMBENCH_HOST_DEVICE static constexpr std::size_t bytes(std::int64_t ctas) {
    return offsetof(SurveyCounts, counts) + ctas * kCountsOfGroup * sizeof(std::int32_t);
  }
};

// Which groups are counted.
struct SurveyGrid {
  bool at_nonzeros = false;  // at sampled ones, where rows have their own order; else this many
  std::int64_t groups = 0;   // evenly spaced ones
  bool by_length = false;    // longest rows first
  std::int64_t shares = 1;   // of each group, else
  // CTAs behind those of all groups in natural order, and the nonzeros of the share of each.
  int spare = 0;
  std::int32_t of_spare = 0;

  // A CTA's share of the columns of the windows of a group, of that number among those counted.
  struct Share {
    std::int64_t group;
    int index, count;
  };
  SPMMBENCH_HOST_DEVICE constexpr std::int64_t ctas() const {
    if (!by_length || groups == 0) return groups * shares + spare;
    const std::int64_t next = groups - 1 < kNextGroups ? groups - 1 : kNextGroups;
    return groups + kSharesOfFirst - 1 + next * (kSharesOfNext - 1);
  }
  SPMMBENCH_HOST_DEVICE constexpr Share share(std::int64_t cta) const {
    if (!by_length) return {cta / shares, static_cast<int>(cta % shares), static_cast<int>(shares)};
    if (cta < kSharesOfFirst) return {0, static_cast<int>(cta), kSharesOfFirst};
    const std::int64_t next = cta - kSharesOfFirst;
    if (next < kNextGroups * kSharesOfNext)
      return {1 + next / kSharesOfNext, static_cast<int>(next % kSharesOfNext), kSharesOfNext};
    return {1 + kNextGroups + next - kNextGroups * kSharesOfNext, 0, 1};
  }
  // Spare CTAs of a group of so many nonzeros. Over all groups these are `spare` at most.
  SPMMBENCH_HOST_DEVICE constexpr int spare_of(std::int32_t entries) const {
    return spare == 0 || entries == 0 ? 0 : (entries - 1) / of_spare;
  }
};

// Sums over the windows of each height: distinct columns, and tiles of them filled up.
struct GroupSums {
  std::array<double, 3> gathered{}, stored{};
  double nnz = 0;
};
SPMMBENCH_HOST_DEVICE inline GroupSums sums_of(const std::int32_t* counts) {
  constexpr int kTile = WcsrShape{}.tile_columns;
  GroupSums out;
  for (int height = 0; height < 3; ++height)
    for (int i = 0; i < windows_of_height(height); ++i) {
      const std::int32_t columns = counts[first_of_height(height) + i];
      out.gathered[height] += columns;
      out.stored[height] += (columns + kTile - 1) / kTile * kTile;
    }
  out.nnz = counts[kWindowsOfGroup];
  return out;
}

// What is enqueued behind the counts of windows in natural order, before the host knows them.
class SurveyFollower {
 public:
  virtual ~SurveyFollower() = default;

  // Where the survey counts, on the device.
  virtual SurveyCounts* counts() = 0;
  // Enqueues; the first kernel copies the counts to `told` and gives its signal.
  virtual void follow(const SurveyGrid& grid, SurveyCounts* told) = 0;
};

}  // namespace spmmbench::window
