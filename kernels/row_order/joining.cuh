#pragma once
// Who becomes whose partner, and what the next level has: steps 3 and 4 of match_order.cu.

#include <cooperative_groups.h>

#include <cstdint>
#include <cub/block/block_scan.cuh>

#include "ptx/griddepcontrol.cuh"
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
  std::int32_t* order;     // new_rows once more; null: not yet
};

// All rounds of a pass, in one launch; the first, in which each names its best partner, was held by
// those that found it. `states[0]` has it, and afterwards the partners. `counters`
// (Partners::count) are set to 0 for what follows.
struct Rounds {
  State* states[2];
  const std::int32_t* partners;
  std::int32_t* counters;
  std::int32_t clusters;
  bool is_last_pass;  // then the next level is numbered
  // Uniting::columns_sum of the first two levels, and where the host reads them; null: not told.
  const std::int32_t* columns_of_low;
  std::int32_t* told;
  Numbering numbering;

  __device__ void begin(std::int32_t thread) const {
    if (thread < kCounters) counters[thread] = 0;
    if (told != nullptr && thread < 2) told[thread] = columns_of_low[thread];
  }
};

// Whether a cluster has no partner, and in the upper half whether it is the first of two.
inline __device__ std::uint64_t count_of(const State* states, std::int32_t i) {
  const std::int32_t mate = __ldcg(&states[i].mate);
  return mate == kNone ? 1 : mate > i ? std::uint64_t{1} << 32 : 0;
}

struct Joining {
  const State* states;
  const std::uint64_t* before;  // sums of count_of before each cluster, and of all
  const std::int32_t* unmatched;
  std::uint64_t all;  // the last of `before`

  // Those without a partner are joined two by two.
  __device__ std::int32_t partner(std::int32_t i) const {
    const std::int32_t mate = __ldcg(&states[i].mate);
    if (mate != kNone) return mate;
    const std::uint32_t rank = left_before(i), other = rank ^ 1U;
    return other < static_cast<std::uint32_t>(all) ? __ldcg(unmatched + other) : kNone;
  }
  // How many clusters before `i` are the first of two.
  __device__ std::int32_t firsts_before(std::int32_t i) const {
    const auto matched = static_cast<std::int32_t>(before_of(i) >> 32);
    const std::uint32_t pairs = static_cast<std::uint32_t>(all) / 2;
    return matched + static_cast<std::int32_t>(min((left_before(i) + 1) / 2, pairs));
  }

 private:
  __device__ std::uint64_t before_of(std::int32_t i) const {
    return __ldcg(reinterpret_cast<const unsigned long long*>(before) + i);
  }
  __device__ std::uint32_t left_before(std::int32_t i) const {
    return static_cast<std::uint32_t>(before_of(i));
  }
};

// `group`: all threads of the grid.
template <int kCtaThreads, class Group>
inline __device__ void number_clusters(const Group& group, const State* states,
                                       std::int32_t clusters, const Numbering& out) {
  using Scan = cub::BlockScan<std::uint64_t, kCtaThreads>;
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
  for (std::int32_t i = begin + thread; i < end; i += kCtaThreads) own += count_of(states, i);
  sums(own, before, all);
  if (thread == 0) out.totals[cta] = all;
  group.sync();
  std::uint64_t own_before = 0, of_ctas_before = 0;
  own = 0;
  for (std::int32_t i = thread; i < ctas; i += kCtaThreads) {
    const std::uint64_t of_cta = __ldcg(reinterpret_cast<unsigned long long*>(out.totals) + i);
    own += of_cta;
    if (i < cta) own_before += of_cta;
  }
  sums(own_before, before, of_ctas_before);
  std::uint64_t of_all = 0;
  sums(own, before, of_all);
  for (std::int32_t first = begin; first < end; first += kCtaThreads) {
    const std::int32_t i = first + thread;
    own = i < end ? count_of(states, i) : 0;
    sums(own, before, all);
    before += of_ctas_before;
    of_ctas_before += all;
    if (i >= end) continue;
    out.before[i] = before;
    if (own == 1) out.unmatched[static_cast<std::uint32_t>(before)] = i;
  }
  group.sync();
  const Joining joining{states, out.before, out.unmatched, of_all};
  for (auto i = static_cast<std::int32_t>(thread_index()); i < clusters; i += ctas * kCtaThreads) {
    const std::int32_t other = joining.partner(i);
    const bool is_first = other > i;
    const std::int32_t number =
        other == kNone ? clusters / 2 : joining.firsts_before(is_first ? i : other);
    const std::int64_t place = 2 * std::int64_t{number} + (is_first ? 0 : 1);
    out.number[i] = 2 * number + (other != kNone && !is_first ? 1 : 0);
    if (other != kNone) out.joined[place] = i;
    std::int32_t* const to = other == kNone ? out.left : out.new_rows + place * out.rows_of_one;
    std::int32_t* const also =
        other == kNone || out.order == nullptr ? nullptr : out.order + place * out.rows_of_one;
    for (std::int32_t row = 0; row < out.rows_of_one; ++row) {
      const std::int32_t own = out.rows[std::int64_t{i} * out.rows_of_one + row];
      to[row] = own;
      if (also != nullptr) also[row] = own;
    }
  }
}

__global__ void __launch_bounds__(kThreads) hold_rounds(const __grid_constant__ Rounds all) {
  static_assert(kRounds % 2 == 0, "the last round leaves its result in states[1]");
  const auto grid = cooperative_groups::this_grid();
  const auto first = static_cast<std::int32_t>(thread_index());
  const auto stride = static_cast<std::int32_t>(gridDim.x * blockDim.x);
  all.begin(first);
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
  number_clusters<kThreads>(grid, all.states[0], all.clusters, all.numbering);
}

// As hold_rounds, by one cluster of CTAs, which wait for each other in less time than a grid does.
// Of more clusters than kMostInCluster they do not keep enough reads in flight
// (docs/decisions/row-orders.md). Each CTA knows of all clusters whether they have a partner.
constexpr int kRoundThreads = 512, kRoundCtas = 8, kRoundItems = 1;
constexpr std::int32_t kMostInCluster = kRoundThreads * kRoundCtas * kRoundItems;
__global__ void __launch_bounds__(kRoundThreads)
    hold_rounds_in_cluster(const __grid_constant__ Rounds all) {
#if __CUDA_ARCH__ >= 900
  __shared__ unsigned has_none[kMostInCluster / 32];  // a bit for each cluster
  constexpr std::int32_t kStride = kRoundThreads * kRoundCtas;
  const auto group = cooperative_groups::this_cluster();
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const auto first = static_cast<std::int32_t>(thread_index());
  const int lane = threadIdx.x % 32;
  all.begin(first);
  State* const states = all.states[0];
  std::int32_t mate[kRoundItems], named[kRoundItems];
#pragma unroll
  for (int item = 0; item < kRoundItems; ++item) {
    const std::int32_t i = first + item * kStride;
    const State own = i < all.clusters ? states[i] : State{};
    mate[item] = own.mate;
    named[item] = own.mate == kNone ? own.named : kNone;
  }
  group.sync();  // all CTAs have begun, so that their memory is there
  for (int round = 0;; ++round) {
    // Two that named each other are partners.
    std::int32_t named_back[kRoundItems];
#pragma unroll
    for (int item = 0; item < kRoundItems; ++item)
      named_back[item] = named[item] == kNone ? kNone : __ldcg(&states[named[item]].named);
#pragma unroll
    for (int item = 0; item < kRoundItems; ++item) {
      const std::int32_t i = first + item * kStride;
      if (named[item] != kNone && named_back[item] == i) mate[item] = named[item];
    }
    if (round + 1 == kRounds) break;
#pragma unroll
    for (int item = 0; item < kRoundItems; ++item) {
      const std::int32_t i = first + item * kStride, warp_begin = i - lane;
      const unsigned word = __ballot_sync(kWarp, i < all.clusters && mate[item] == kNone);
      if (warp_begin < all.clusters && lane < kRoundCtas)
        *group.map_shared_rank(has_none + warp_begin / 32, lane) = word;
    }
    group.sync();
    // Each names the first of its best that has none.
#pragma unroll
    for (int item = 0; item < kRoundItems; ++item) {
      const std::int32_t i = first + item * kStride;
      named[item] = kNone;
      if (i >= all.clusters || mate[item] != kNone) continue;
      const auto* const best = reinterpret_cast<const int4*>(all.partners) + std::int64_t{i} * 2;
      const int4 low = best[0], high = best[1];
      const std::int32_t ranked[kPartners] = {low.x,  low.y,  low.z,  low.w,
                                              high.x, high.y, high.z, high.w};
#pragma unroll
      for (int at = kPartners - 1; at >= 0; --at)
        if (ranked[at] != kNone && (has_none[ranked[at] / 32] >> (ranked[at] % 32) & 1U) != 0)
          named[item] = ranked[at];
      __stcg(&states[i].named, named[item]);
    }
    group.sync();
  }
  group.sync();  // none reads a name any longer
#pragma unroll
  for (int item = 0; item < kRoundItems; ++item) {
    const std::int32_t i = first + item * kStride;
    if (i < all.clusters) states[i] = {mate[item], kNone};
  }
  if (!all.is_last_pass) return;
  group.sync();
  number_clusters<kRoundThreads>(group, states, all.clusters, all.numbering);
#endif
}

}  // namespace spmmbench::match
