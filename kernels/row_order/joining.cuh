#pragma once
// Who becomes whose partner, and what the next level has: steps 3 and 4 of match_order.cu.

#include <cooperative_groups.h>

#include <cstdint>

#include "reorder/match.hpp"
#include "row_order/level.cuh"

namespace spmmbench::match {

// The partner after a round: two that named each other in it have one.
inline __device__ std::int32_t mate_after(const State* round, const State& own, std::int32_t i) {
  if (own.mate != kNone || own.named == kNone) return own.mate;
  return round[own.named].named == i ? own.named : kNone;
}

// All rounds of a pass, in one cooperative launch; afterwards `states[1]` has the partners.
// `counts`: whether a cluster has none, and in the upper half whether it is the first of two
// partners. `counters` (Partners::count) are set to 0 for what follows.
struct Rounds {
  State* states[2];
  const std::int32_t* partners;
  std::uint64_t* counts;
  std::int32_t* counters;
  std::int32_t clusters;
};
__global__ void __launch_bounds__(kThreads) hold_rounds(const __grid_constant__ Rounds all) {
  static_assert(kRounds % 2 == 0, "the last round leaves its result in states[0]");
  const auto grid = cooperative_groups::this_grid();
  const auto first = static_cast<std::int32_t>(thread_index());
  const auto stride = static_cast<std::int32_t>(gridDim.x * blockDim.x);
  if (first < kCounters) all.counters[first] = 0;
  for (int round = 0; round < kRounds; ++round) {
    const State* const before = all.states[round % 2];
    State* const after = all.states[1 - round % 2];
    for (std::int32_t i = first; i < all.clusters; i += stride) {
      // All are read at once: one after another they would be most of a round.
      const State own = before[i];
      std::int32_t free[kPartners];
#pragma unroll
      for (int at = 0; at < kPartners; ++at)
        free[at] = all.partners[std::int64_t{i} * kPartners + at];
      const std::int32_t mate = mate_after(before, own, i);
      std::int32_t named = kNone;
      if (mate == kNone) {
        State states[kPartners];
#pragma unroll
        for (int at = 0; at < kPartners; ++at)
          if (free[at] != kNone) states[at] = before[free[at]];
#pragma unroll
        for (int at = kPartners - 1; at >= 0; --at)
          if (free[at] != kNone && mate_after(before, states[at], free[at]) == kNone)
            named = free[at];
      }
      after[i] = {mate, named};
    }
    grid.sync();
  }
  // Settles the last round, in the other array, since others still read this one.
  for (std::int32_t i = first; i <= all.clusters; i += stride) {
    if (i == all.clusters) {
      all.counts[i] = 0;
      continue;
    }
    const std::int32_t mate = mate_after(all.states[0], all.states[0][i], i);
    all.counts[i] = mate == kNone ? 1 : mate > i ? std::uint64_t{1} << 32 : 0;
    all.states[1][i] = {mate, kNone};
  }
}

// ---- Joining ----

__global__ void list_unmatched(std::int32_t clusters, const State* states,
                               const std::uint64_t* before, std::int32_t* unmatched) {
  const auto i = static_cast<std::int32_t>(thread_index());
  if (i < clusters && states[i].mate == kNone) unmatched[static_cast<std::uint32_t>(before[i])] = i;
}

struct Joining {
  const State* states;
  const std::uint64_t* before;  // sums of `counts` before each cluster, and of all
  const std::int32_t* unmatched;
  std::int32_t clusters;

  __device__ std::int32_t partner(std::int32_t i) const {
    if (states[i].mate != kNone) return states[i].mate;
    const auto rank = static_cast<std::uint32_t>(before[i]), other = rank ^ 1U;
    return other < static_cast<std::uint32_t>(before[clusters]) ? unmatched[other] : kNone;
  }
  // How many clusters before `i` are the first of two.
  __device__ std::int32_t firsts_before(std::int32_t i) const {
    const auto matched = static_cast<std::int32_t>(before[i] >> 32);
    const std::uint32_t left = static_cast<std::uint32_t>(before[i]);
    const std::uint32_t pairs = static_cast<std::uint32_t>(before[clusters]) / 2;
    return matched + static_cast<std::int32_t>(min((left + 1) / 2, pairs));
  }
};

// The new number of every cluster, clusters / 2 for the one that is left over, and the rows in
// their new places. `left`: where in the order the rows of that one go. `joined`: of each new
// cluster the two that it is made of.
__global__ void number_clusters(Joining all, const std::int32_t* rows, std::int32_t rows_of_one,
                                std::int32_t* number, std::int32_t* joined, std::int32_t* new_rows,
                                std::int32_t* left) {
  const auto i = static_cast<std::int32_t>(thread_index());
  if (i >= all.clusters) return;
  const std::int32_t other = all.partner(i);
  const bool is_first = other > i;
  const std::int32_t own =
      other == kNone ? all.clusters / 2 : all.firsts_before(is_first ? i : other);
  const std::int64_t place = 2 * std::int64_t{own} + (is_first ? 0 : 1);
  number[i] = own;
  if (other != kNone) joined[place] = i;
  std::int32_t* const to = other == kNone ? left : new_rows + place * rows_of_one;
  for (std::int32_t row = 0; row < rows_of_one; ++row)
    to[row] = rows[std::int64_t{i} * rows_of_one + row];
}

}  // namespace spmmbench::match
