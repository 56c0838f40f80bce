#pragma once
// Host side: which block of C is computed when, and by which CTA of a persistent grid.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "async_bcsr/format.hpp"

namespace spmmbench::async_bcsr {

// One block of C, as the device reads it in one 32-byte load.
struct alignas(32) Work {
  std::int32_t group;                          // of BcsrGroups; the device reads the rest
  std::int32_t n_tile;                         // columns from n_tile * (columns per cluster)
  std::int32_t begin, end;                     // steps
  std::int32_t unit_row[BcsrGroups::kHeight];  // as in BcsrGroups
};

// The time that a block of C takes on one multiprocessor: for each step the longer of its bytes
// through L2 and its arithmetic, then the store. The rates were measured on an H200 with all
// multiprocessors busy.
struct CostModel {
  static constexpr double kL2BytesPerUs = 65e3;
  static constexpr double kFlopsPerUs = 5.8e6;  // 16-bit; 32-bit steps are half as deep and as fast
  static constexpr double kStoreBytesPerUs = 36e3;
  static constexpr double kStartUs = 0.5;

  static double group_us(const BcsrGroupIndex& groups, std::int64_t g, int tile_n) {
    constexpr double kTileBytes = BcsrGroups::kUnitRows * 128.0;
    const double block_us = 2.0 * BcsrGroups::kUnitRows * 64 * tile_n / kFlopsPerUs;
    const auto steps_us = [&](std::int64_t steps, int blocks) {
      return static_cast<double>(steps) *
             std::max((tile_n * 128.0 + blocks * kTileBytes) / kL2BytesPerUs, blocks * block_us);
    };
    // A step has a block of one or of both unit rows, the single step of an empty group none.
    const std::int64_t steps = groups.steps_of(g), blocks = groups.blocks(g);
    const std::int64_t both = std::max<std::int64_t>(0, blocks - steps);
    const std::int64_t none = blocks == 0 ? steps : 0;
    const double store_us =
        4.0 * BcsrGroups::kUnitRows * groups.kHeight * tile_n / kStoreBytesPerUs;
    return kStartUs + store_us + steps_us(both, 2) + steps_us(steps - both - none, 1) +
           steps_us(none, 0);
  }
};

inline Work make_work(const BcsrGroupIndex& groups, std::int64_t g, std::int64_t n_tile) {
  return {static_cast<std::int32_t>(g),
          static_cast<std::int32_t>(n_tile),
          groups.step_ptr[g],
          groups.step_ptr[g + 1],
          {groups.unit_row[2 * g], groups.unit_row[2 * g + 1]}};
}

// Bands of `swath` column tiles one after the other, so that the bands of B in use stay in L2;
// within a band the groups in their order, which is heaviest first. A grid with one cluster per
// block of C starts them in this order.
inline std::vector<Work> launch_order(const BcsrGroupIndex& groups, std::int64_t n_tiles,
                                      std::int64_t swath) {
  std::vector<Work> out;
  for (std::int64_t band = 0; band < n_tiles; band += swath)
    for (std::int64_t g = 0; g < groups.groups(); ++g)
      for (std::int64_t n = band; n < std::min(n_tiles, band + swath); ++n)
        out.push_back(make_work(groups, g, n));
  return out;
}

// The steps of all groups and, behind them, the same in reverse order.
inline std::vector<BcsrStep> both_ways(const std::vector<BcsrStep>& steps) {
  std::vector<BcsrStep> out = steps;
  out.insert(out.end(), steps.rbegin(), steps.rend());
  return out;
}
// The block of C with its steps in reverse order, of both_ways of `steps` steps.
inline Work backwards(Work work, std::int32_t steps) {
  const std::int32_t begin = 2 * steps - work.end, end = 2 * steps - work.begin;
  work.begin = begin, work.end = end;
  return work;
}

struct Schedule {
  std::vector<Work> work;              // begin, end: in both_ways
  std::vector<std::int32_t> work_ptr;  // clusters + 1: each cluster's part of `work`
  double us = 0;                       // when the last cluster ends, by the model
};

// The persistent grid: the next block of C goes to the cluster that is free first. A cluster walks
// every second of its blocks backwards: where the next blocks of C need the same band of B, they
// begin with its end, which is still in L2.
inline Schedule make_schedule(const BcsrGroupIndex& groups, const std::vector<Work>& order,
                              int tile_n, int clusters) {
  std::vector<double> cost(groups.groups());
  for (std::int64_t g = 0; g < groups.groups(); ++g)
    cost[g] = CostModel::group_us(groups, g, tile_n);
  using Free = std::pair<double, int>;
  std::priority_queue<Free, std::vector<Free>, std::greater<>> free;
  for (int c = 0; c < clusters; ++c) free.emplace(0.0, c);
  std::vector<std::vector<Work>> lists(clusters);
  Schedule out;
  for (const Work& work : order) {
    auto [time, cluster] = free.top();
    free.pop();
    const bool turn = lists[cluster].size() % 2 != 0;
    lists[cluster].push_back(turn ? backwards(work, groups.step_ptr.back()) : work);
    time += cost[work.group];
    out.us = std::max(out.us, time);
    free.emplace(time, cluster);
  }
  out.work_ptr.push_back(0);
  for (const std::vector<Work>& list : lists) {
    out.work.insert(out.work.end(), list.begin(), list.end());
    out.work_ptr.push_back(static_cast<std::int32_t>(out.work.size()));
  }
  return out;
}

}  // namespace spmmbench::async_bcsr
