#pragma once
// Who becomes whose partner, and what the next level has: steps 3 and 4 of match_order.cu.

#include <cooperative_groups.h>

#include <cstdint>
#include <cub/block/block_scan.cuh>

#include "reorder/match.hpp"
#include "row_order/level.cuh"

namespace spmmbench::match {

// The partner after a round: two that named each other in it have one.
inline __device__ std::int32_t mate_after(const State* round, const State& own, std::int32_t i) {
  if (own.mate != kNone || own.named == kNone) return own.mate;
  return round[own.named].named == i ? own.named : kNone;
}

// Numbering of the clusters of the next level, in the order of the first of each two.
struct Numbering {
  std::uint64_t* totals;    // of each CTA
  std::uint64_t* before;    // [clusters + 1], see count_of
  std::int32_t* unmatched;  // in their order
  const std::int32_t* rows;
  std::int32_t rows_of_one;
  // Of every cluster twice the new one, clusters / 2 for the one left over, and 1 for a second.
  std::int32_t* number;
  std::int32_t* joined;    // of each new cluster the two that it is made of
  std::int32_t* new_rows;  // in their new places
  std::int32_t* left;      // where in the order the rows of the one left over go
};

// All rounds of a pass, in one cooperative launch; the first, in which each names its best partner,
// was held by those that found it. `states[0]` has it, and afterwards the partners. `counters`
// (Partners::count) are set to 0 for what follows.
struct Rounds {
  State* states[2];
  const std::int32_t* partners;
  std::int32_t* counters;
  std::int32_t clusters;
  bool is_last_pass;  // then the next level is numbered
  Numbering numbering;
};

// Whether a cluster has no partner, and in the upper half whether it is the first of two.
inline __device__ std::uint64_t count_of(const State* states, std::int32_t i) {
  const std::int32_t mate = states[i].mate;
  return mate == kNone ? 1 : mate > i ? std::uint64_t{1} << 32 : 0;
}

struct Joining {
  const State* states;
  const std::uint64_t* before;  // sums of count_of before each cluster, and of all
  const std::int32_t* unmatched;
  std::int32_t clusters;

  // Those without a partner are joined two by two.
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

inline __device__ void number_clusters(const cooperative_groups::grid_group& grid,
                                       const State* states, std::int32_t clusters,
                                       const Numbering& out) {
  using Scan = cub::BlockScan<std::uint64_t, kThreads>;
  __shared__ typename Scan::TempStorage scan;
  const auto sums = [&](std::uint64_t own, std::uint64_t& before, std::uint64_t& all) {
    Scan(scan).ExclusiveSum(own, before, all);
    __syncthreads();
  };
  // Each CTA counts its part of the clusters, and then knows what is before it.
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const auto ctas = static_cast<std::int32_t>(gridDim.x),
             cta = static_cast<std::int32_t>(blockIdx.x);
  const std::int32_t part = (clusters + ctas - 1) / ctas;
  const std::int32_t begin = min(cta * part, clusters), end = min(begin + part, clusters);
  std::uint64_t own = 0, before = 0, all = 0;
  for (std::int32_t i = begin + thread; i < end; i += kThreads) own += count_of(states, i);
  sums(own, before, all);
  if (thread == 0) out.totals[cta] = all;
  grid.sync();
  std::uint64_t own_before = 0, of_ctas_before = 0;
  own = 0;
  for (std::int32_t i = thread; i < ctas; i += kThreads) {
    own += out.totals[i];
    if (i < cta) own_before += out.totals[i];
  }
  sums(own_before, before, of_ctas_before);
  sums(own, before, all);
  if (cta == 0 && thread == 0) out.before[clusters] = all;
  for (std::int32_t first = begin; first < end; first += kThreads) {
    const std::int32_t i = first + thread;
    own = i < end ? count_of(states, i) : 0;
    sums(own, before, all);
    before += of_ctas_before;
    of_ctas_before += all;
    if (i >= end) continue;
    out.before[i] = before;
    if (own == 1) out.unmatched[static_cast<std::uint32_t>(before)] = i;
  }
  grid.sync();
  const Joining joining{states, out.before, out.unmatched, clusters};
  for (auto i = static_cast<std::int32_t>(thread_index()); i < clusters; i += ctas * kThreads) {
    const std::int32_t other = joining.partner(i);
    const bool is_first = other > i;
    const std::int32_t number =
        other == kNone ? clusters / 2 : joining.firsts_before(is_first ? i : other);
    const std::int64_t place = 2 * std::int64_t{number} + (is_first ? 0 : 1);
    out.number[i] = 2 * number + (other != kNone && !is_first ? 1 : 0);
    if (other != kNone) out.joined[place] = i;
    std::int32_t* const to = other == kNone ? out.left : out.new_rows + place * out.rows_of_one;
    for (std::int32_t row = 0; row < out.rows_of_one; ++row)
      to[row] = out.rows[std::int64_t{i} * out.rows_of_one + row];
  }
}

__global__ void __launch_bounds__(kThreads) hold_rounds(const __grid_constant__ Rounds all) {
  static_assert(kRounds % 2 == 0, "the last round leaves its result in states[1]");
  const auto grid = cooperative_groups::this_grid();
  const auto first = static_cast<std::int32_t>(thread_index());
  const auto stride = static_cast<std::int32_t>(gridDim.x * blockDim.x);
  if (first < kCounters) all.counters[first] = 0;
  for (int round = 0; round + 1 < kRounds; ++round) {
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
  for (std::int32_t i = first; i < all.clusters; i += stride)
    all.states[0][i] = {mate_after(all.states[1], all.states[1][i], i), kNone};
  if (!all.is_last_pass) return;
  grid.sync();
  number_clusters(grid, all.states[0], all.clusters, all.numbering);
}

}  // namespace spmmbench::match
