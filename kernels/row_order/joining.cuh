#pragma once
// Who becomes whose partner, and the numbers of the next level: step 5 of match_order.cu.

#include <climits>
#include <cstdint>
#include <cub/block/block_scan.cuh>

#include "ptx/griddepcontrol.cuh"
#include "reorder/match.hpp"
#include "row_order/grid_barrier.cuh"
#include "row_order/level.cuh"
#include "row_order/partners.cuh"
#include "row_order/suits.cuh"

namespace spmmbench::match {

// Numbering of the clusters of the next level, in the order of the first of each two. A CTA numbers
// those whose firsts it has.
struct Numbering {
  std::uint64_t* totals;     // of each CTA, see count_of
  std::int32_t* first_left;  // of each CTA the first without a partner, or kNone
  const std::int32_t* rows;
  std::int32_t rows_of_one;
  // Twice each cluster's new one, and 1 more for the second of two (left over: clusters / 2).
  std::int32_t* number;
  std::int32_t* joined;    // of each new cluster the two that it is made of
  std::int32_t* new_rows;  // in their new places
  std::int32_t* left;      // where in the order the rows of the one left over go
  std::int32_t* order;     // new_rows once more; null: not yet

  // Two clusters become one.
  __device__ void join(std::int32_t first, std::int32_t second, std::int32_t one) const {
    number[first] = 2 * one;
    number[second] = 2 * one + 1;
    reinterpret_cast<int2*>(joined)[one] = {first, second};
    if (rows_of_one == 1) {
      const int2 two = {rows[first], rows[second]};
      copy(&two, 1, one);
    } else if (rows_of_one == 2) {
      const auto* const pairs = reinterpret_cast<const int2*>(rows);
      const int2 of_both[] = {pairs[first], pairs[second]};
      copy(of_both, 2, one);
    } else {
      const std::int32_t fours = rows_of_one / 4;
      const auto* const of_all = reinterpret_cast<const int4*>(rows);
      for (std::int32_t i = 0; i < fours; ++i) {
        const int4 of_both[] = {of_all[std::int64_t{first} * fours + i],
                                of_all[std::int64_t{second} * fours + i]};
        const std::int64_t to = 2 * std::int64_t{one} * fours + i;
        for (std::int32_t* const out : {new_rows, order}) {
          if (out == nullptr) continue;
          reinterpret_cast<int4*>(out)[to] = of_both[0];
          reinterpret_cast<int4*>(out)[to + fours] = of_both[1];
        }
      }
    }
  }
  // The one left over.
  __device__ void leave(std::int32_t cluster, std::int32_t one) const {
    number[cluster] = 2 * one;
    for (std::int32_t row = 0; row < rows_of_one; ++row)
      left[row] = rows[std::int64_t{cluster} * rows_of_one + row];
  }

 private:
  __device__ void copy(const int2* from, std::int32_t count, std::int32_t one) const {
    for (std::int32_t* const out : {new_rows, order})
      for (std::int32_t i = 0; out != nullptr && i < count; ++i)
        reinterpret_cast<int2*>(out)[std::int64_t{one} * count + i] = from[i];
  }
};

// Whether a cluster has no partner, and in the upper half whether it is the first of two.
inline __device__ std::uint64_t count_of(std::int32_t mate, std::int32_t i) {
  return mate == kNone ? 1 : mate > i ? std::uint64_t{1} << 32 : 0;
}
// What is counted of the clusters before one, and the new number of the pair that it is the first
// of: of its place among those, and of the pairs of those without a partner, which are joined two
// by two in their order.
inline __device__ std::int32_t left_of(std::uint64_t counted) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(counted));
}
inline __device__ std::int32_t number_after(std::uint64_t before, std::int32_t pairs_left) {
  return static_cast<std::int32_t>(before >> 32) + min((left_of(before) + 1) / 2, pairs_left);
}

// A level whose clusters have asked.
struct Asked {
  Suits suits, further;  // of all, and of those that found no partner
  std::int32_t clusters;
  std::int32_t* mates;
  unsigned* arrived;  // see GridBarrier
  // Uniting::columns_sum of the second and third level, and where the host reads them; null: not
  // told.
  const std::int32_t* columns_of_low;
  std::int32_t* told;
  Numbering numbering;

  __device__ bool is_free(std::int32_t i) const { return __ldcg(mates + i) == kNone; }
};

constexpr int kJoinThreads = 512;  // of a CTA
constexpr int kJoinClusters = 64;  // of a CTA at least: who is left without a partner takes a warp

// Clusters that a CTA numbers: those from `begin` on.
struct CtaPart {
  std::int32_t begin, end;

  static __device__ CtaPart of_cta(std::int32_t clusters) {
    const auto ctas = static_cast<std::int32_t>(gridDim.x),
               cta = static_cast<std::int32_t>(blockIdx.x);
    const std::int32_t part = (clusters + ctas - 1) / ctas, begin = min(cta * part, clusters);
    return {begin, min(begin + part, clusters)};
  }
};

// What a warp has met: in the order of meeting, and by how many ways.
struct Met {
  static constexpr int kMost = kNear + kNear * kNear;
  int4 clusters[kMost / 4 + 1];
  std::uint64_t ranks[kMet];  // of the first of all that differ

  // How lane i ranks the i-th of the first `count` that differs from those before it, or 0.
  __device__ std::uint64_t rank(std::int32_t own, int count) {
    const int lane = threadIdx.x % 32;
    const auto* const all = reinterpret_cast<const std::int32_t*>(clusters);
    if (count <= 32) {
      const std::int32_t other = lane < count ? all[lane] : kNone;
      const unsigned same = __match_any_sync(kWarp, other);
      return other == kNone || lane != __ffs(same) - 1 ? 0 : rank_ways(own, other, __popc(same));
    }
    int kept = 0;
    for (int first = 0; first < count && kept < kMet; first += 32) {
      const int at = first + lane;
      const std::int32_t other = at < count ? all[at] : own;  // which is none of them
      int ways = 0, before = 0;
      for (int four = 0; 4 * four < count; ++four) {
        const int4 there = clusters[four];
        const int place = at - 4 * four;
        ways += (there.x == other ? 1 : 0) + (there.y == other ? 1 : 0) +
                (there.z == other ? 1 : 0) + (there.w == other ? 1 : 0);
        before += (there.x == other && place > 0 ? 1 : 0) +
                  (there.y == other && place > 1 ? 1 : 0) +
                  (there.z == other && place > 2 ? 1 : 0) + (there.w == other && place > 3 ? 1 : 0);
      }
      const bool is_new = at < count && before == 0;
      const unsigned lanes = __ballot_sync(kWarp, is_new);
      const int place = kept + __popc(lanes & ((1U << lane) - 1U));
      if (is_new && place < kMet) ranks[place] = rank_ways(own, other, ways);
      kept += __popc(lanes);
    }
    __syncwarp();
    return lane < kept ? ranks[lane] : 0;
  }
};

// A warp: `own`, which has no partner, asks others without one.
inline __device__ void ask_further(const Asked& level, std::int32_t own, Met& met) {
  static_assert(kMet == 32 && kNear <= 32);
  constexpr int kAtOnce = 32 / kNear, kTurns = kNear / kAtOnce;
  const int lane = threadIdx.x % 32;
  const std::uint64_t* const ranks = level.suits.ranks;
  const std::uint64_t rank = lane < kNear ? ranks[std::int64_t{own} * kNear + lane] : 0;
  const std::int32_t near = rank == 0 ? kNone : ranked_partner(own, rank);
  std::int32_t others[kTurns + 1] = {near};
#pragma unroll
  for (int i = 0; i < kTurns; ++i) {
    const std::int32_t one = __shfl_sync(kWarp, near, i * kAtOnce + lane / kNear);
    const std::uint64_t next = one == kNone ? 0 : ranks[std::int64_t{one} * kNear + lane % kNear];
    others[i + 1] = next == 0 ? kNone : ranked_partner(one, next);
  }
  bool is_met[kTurns + 1];
#pragma unroll
  for (int i = 0; i <= kTurns; ++i)
    is_met[i] = others[i] != kNone && others[i] != own && level.is_free(others[i]);
  auto* const clusters = reinterpret_cast<std::int32_t*>(met.clusters);
  int count = 0;
#pragma unroll
  for (int i = 0; i <= kTurns; ++i) {
    const unsigned lanes = __ballot_sync(kWarp, is_met[i]);
    if (is_met[i]) clusters[count + __popc(lanes & ((1U << lane) - 1U))] = others[i];
    count += __popc(lanes);
  }
  if (lane < 4) clusters[count + lane] = kNone;  // the last four are read together
  __syncwarp();
  const Best best = Best::of(met.rank(own, count));
  const int asked = min(kFurther, __popc(__ballot_sync(kWarp, near != kNone)));
  level.further.ask(own, lane < asked ? best.own : 0);
}

// All that have no partner ask further.
inline __device__ void ask_all_further(const Asked& level, Met* met_of_warps) {
  __shared__ std::int32_t left[kJoinThreads], left_count;
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const int lane = thread % 32, warp = thread / 32;
  const std::int64_t ctas = gridDim.x;
  for (std::int64_t first = 0; first * ctas < level.clusters; first += kJoinThreads) {
    if (thread == 0) left_count = 0;
    __syncthreads();
    // Neighbours, which often are left alike, are of different CTAs.
    const std::int64_t item = (first + thread) * ctas + blockIdx.x;
    const bool is_left = item < level.clusters && level.is_free(static_cast<std::int32_t>(item));
    const unsigned lanes = __ballot_sync(kWarp, is_left);
    int begin = 0;
    if (lane == 0 && lanes != 0) begin = atomicAdd(&left_count, __popc(lanes));
    begin = __shfl_sync(kWarp, begin, 0);
    if (is_left)
      left[begin + __popc(lanes & ((1U << lane) - 1U))] = static_cast<std::int32_t>(item);
    __syncthreads();
    for (std::int32_t i = warp; i < left_count; i += kJoinThreads / 32)
      ask_further(level, left[i], met_of_warps[warp]);
    __syncthreads();
  }
}

using JoinScan = cub::BlockScan<std::uint64_t, kJoinThreads>;

// Sums over the threads of a CTA: before each, and of all.
inline __device__ void sum_counts(std::uint64_t own, std::uint64_t& before, std::uint64_t& all) {
  __shared__ typename JoinScan::TempStorage scan;
  JoinScan(scan).ExclusiveSum(own, before, all);
  __syncthreads();
}

// What a CTA knows of all clusters, and of those before its own.
struct CountedBefore {
  std::uint64_t before, all;

  // All CTAs have written their totals.
  static __device__ CountedBefore of_ctas(const std::uint64_t* totals) {
    std::uint64_t own_before = 0, own = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += kJoinThreads) {
      const std::uint64_t of_cta = __ldcg(reinterpret_cast<const unsigned long long*>(totals) + i);
      own += of_cta;
      if (i < blockIdx.x) own_before += of_cta;
    }
    CountedBefore out;
    std::uint64_t unused = 0;
    sum_counts(own_before, unused, out.before);
    sum_counts(own, unused, out.all);
    return out;
  }
};

// The first of two without a partner whose second is not known yet, and their new number.
struct Waiting {
  std::int32_t cluster, number;
};

// A CTA numbers kJoinThreads of its clusters, whose partners are known. `waiting`, and what is
// counted before these, are then of those that follow.
inline __device__ void number_some(const Numbering& out, std::int32_t i, std::int32_t mate,
                                   bool is_there, std::int32_t pairs_left, Waiting& waiting,
                                   std::uint64_t& before_these) {
  __shared__ std::int32_t left[kJoinThreads];
  std::uint64_t before = 0, these = 0;
  sum_counts(is_there ? count_of(mate, i) : 0, before, these);
  const std::int32_t place = left_of(before), left_here = left_of(these);
  const Waiting waited = waiting;
  before += before_these;
  before_these += these;
  const bool is_left = is_there && mate == kNone;
  if (is_left) left[place] = i;
  __syncthreads();
  const std::int32_t number = number_after(before, pairs_left);
  if (is_left) {
    const bool is_first = left_of(before) % 2 == 0;
    if (is_first && place + 1 < left_here) out.join(i, left[place + 1], number);
    else if (is_first) waiting = {i, number};
    else if (place == 0 && waited.cluster != kNone) out.join(waited.cluster, i, waited.number);
    if (!is_first && place + 1 == left_here) waiting = {kNone, 0};
  } else if (is_there && mate > i) {
    out.join(i, mate, number);
  }
}

// All CTAs of a grid, after all have asked. Those left find their partners first.
inline __device__ void number_clusters(GridBarrier& grid, const Asked& level) {
  __shared__ std::int32_t first_left;
  __shared__ Waiting waiting;
  const std::int32_t clusters = level.clusters;
  const Numbering& out = level.numbering;
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const auto [begin, end] = CtaPart::of_cta(clusters);
  if (thread == 0) {
    first_left = INT_MAX;
    waiting = {kNone, 0};
  }
  __syncthreads();
  // Each CTA counts its part of the clusters, and then knows what is before it.
  std::uint64_t own = 0, before = 0, all = 0;
  std::int32_t first_of_thread = INT_MAX;
  for (std::int32_t i = begin + thread; i < end; i += kJoinThreads) {
    std::int32_t mate = __ldcg(level.mates + i);
    if (mate == kNone) {
      mate = level.further.partner(i);
      if (mate == kNone) first_of_thread = min(first_of_thread, i);
      else level.mates[i] = mate;
    }
    own += count_of(mate, i);
  }
  if (first_of_thread != INT_MAX) atomicMin(&first_left, first_of_thread);
  sum_counts(own, before, all);
  if (thread == 0) {
    out.totals[blockIdx.x] = all;
    out.first_left[blockIdx.x] = first_left == INT_MAX ? kNone : first_left;
  }
  grid.sync();
  const CountedBefore counted = CountedBefore::of_ctas(out.totals);
  const std::int32_t pairs_left = left_of(counted.all) / 2;
  std::uint64_t before_these = counted.before;
  for (std::int32_t first = begin; first < end; first += kJoinThreads) {
    const std::int32_t i = first + thread;
    const bool is_there = i < end;
    number_some(out, i, is_there ? level.mates[i] : kNone, is_there, pairs_left, waiting,
                before_these);
    __syncthreads();
  }
  if (thread != 0 || waiting.cluster == kNone) return;
  for (unsigned cta = blockIdx.x + 1; cta < gridDim.x; ++cta)
    if (const std::int32_t next = __ldcg(out.first_left + cta); next != kNone) {
      out.join(waiting.cluster, next, waiting.number);
      return;
    }
  out.leave(waiting.cluster, clusters / 2);
}

__global__ void __launch_bounds__(kJoinThreads, 2)
    join_clusters(const __grid_constant__ Asked level) {
  __shared__ Met met_of_warps[kJoinThreads / 32];
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  GridBarrier grid(level.arrived);
  const auto first = static_cast<std::int32_t>(thread_index());
  if (level.told != nullptr && first < 2) level.told[first] = level.columns_of_low[first];
  const auto threads = static_cast<std::int32_t>(gridDim.x) * kJoinThreads;
  for (std::int32_t i = first; i < level.clusters; i += threads)
    level.mates[i] = level.suits.partner(i);
  grid.sync();
  ask_all_further(level, met_of_warps);
  grid.sync();
  number_clusters(grid, level);
}

}  // namespace spmmbench::match
