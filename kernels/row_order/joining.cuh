#pragma once
// Who becomes whose partner, and the numbers of the next level: step 5 of match_order.cu.

#include <cstdint>
#include <cub/block/block_scan.cuh>

#include "ptx/griddepcontrol.cuh"
#include "reorder/match.hpp"
#include "row_order/level.cuh"
#include "row_order/partners.cuh"
#include "row_order/suits.cuh"

namespace spmmbench::match {

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

// Whether a cluster has no partner, and in the upper half whether it is the first of two.
inline __device__ std::uint64_t count_of(std::int32_t mate, std::int32_t i) {
  return mate == kNone ? 1 : mate > i ? std::uint64_t{1} << 32 : 0;
}

struct Joining {
  const std::int32_t* mates;
  const std::uint64_t* before;  // sums of count_of before each cluster, and of all
  const std::int32_t* unmatched;
  std::uint64_t all;  // the last of `before`

  // Those without a partner are joined two by two.
  __device__ std::int32_t partner(std::int32_t i) const {
    const std::int32_t mate = __ldcg(mates + i);
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

// All CTAs of a grid wait for each other. They all are on the device at the same time: they are no
// more than fit, and nothing that follows begins before they have.
class GridBarrier {
 public:
  // `arrived`: 0 before.
  explicit __device__ GridBarrier(unsigned* arrived) : arrived_(arrived) {}
  __device__ void sync() {
    __syncthreads();
    if (threadIdx.x == 0) {
      expected_ += gridDim.x;
      __threadfence();
      atomicAdd(arrived_, 1U);
      while (*static_cast<volatile unsigned*>(arrived_) < expected_) {
      }
      __threadfence();
    }
    __syncthreads();
  }

 private:
  unsigned* arrived_;
  unsigned expected_ = 0;
};

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

// What a warp has met: lane i the i-th, and by how many ways.
struct Met {
  std::int32_t cluster = kNone, ways = 0;

  // One of each lane, or kNone, in the order of lanes.
  __device__ void add(std::int32_t given) {
    const int lane = threadIdx.x % 32;
    for (unsigned left = __ballot_sync(kWarp, given != kNone); left != 0; left &= left - 1) {
      const std::int32_t one = __shfl_sync(kWarp, given, __ffs(left) - 1);
      const unsigned there = __ballot_sync(kWarp, cluster == one);
      const int place = there != 0 ? __ffs(there) - 1 : count_++;
      if (lane != place) continue;
      cluster = one;
      ++ways;
    }
  }

 private:
  int count_ = 0;  // at least kMet: the others are left out
};

// A warp: `own`, which has no partner, asks others without one.
inline __device__ void ask_further(const Asked& level, std::int32_t own) {
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
#pragma unroll
  for (int i = 0; i <= kTurns; ++i)
    if (others[i] != kNone && (others[i] == own || !level.is_free(others[i]))) others[i] = kNone;
  Met met;
#pragma unroll
  for (int i = 0; i <= kTurns; ++i) met.add(others[i]);
  const Best best = Best::of(met.ways == 0 ? 0 : rank_ways(own, met.cluster, met.ways));
  const int asked = min(kFurther, __popc(__ballot_sync(kWarp, near != kNone)));
  level.further.ask(own, lane < asked ? best.own : 0);
}

// All CTAs of a grid.
template <int kCtaThreads>
inline __device__ void number_clusters(GridBarrier& grid, const Asked& level) {
  const std::int32_t clusters = level.clusters;
  const Numbering& out = level.numbering;
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
  const auto [begin, end] = CtaPart::of_cta(clusters);
  std::uint64_t own = 0, before = 0, all = 0;
  for (std::int32_t i = begin + thread; i < end; i += kCtaThreads)
    own += count_of(level.mates[i], i);
  sums(own, before, all);
  if (thread == 0) out.totals[cta] = all;
  grid.sync();
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
    own = i < end ? count_of(level.mates[i], i) : 0;
    sums(own, before, all);
    before += of_ctas_before;
    of_ctas_before += all;
    if (i >= end) continue;
    out.before[i] = before;
    if (own == 1) out.unmatched[static_cast<std::uint32_t>(before)] = i;
  }
  grid.sync();
  const Joining joining{level.mates, out.before, out.unmatched, of_all};
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

constexpr int kJoinThreads = 512;   // of a CTA
constexpr int kJoinClusters = 128;  // of a CTA at least: who is left without a partner takes a warp
__global__ void __launch_bounds__(kJoinThreads, 2)
    join_clusters(const __grid_constant__ Asked level) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  GridBarrier grid(level.arrived);
  const auto first = static_cast<std::int32_t>(thread_index());
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  if (level.told != nullptr && first < 2) level.told[first] = level.columns_of_low[first];
  const auto [begin, end] = CtaPart::of_cta(level.clusters);
  for (std::int32_t i = begin + thread; i < end; i += kJoinThreads)
    level.mates[i] = level.suits.partner(i);
  grid.sync();
  // Neighbours, which often are left alike, are of different warps.
  const int lane = thread % 32;
  const std::int32_t warp = first / 32,
                     warps = static_cast<std::int32_t>(gridDim.x) * kJoinThreads / 32;
  for (std::int64_t of_warp = warp; of_warp < level.clusters; of_warp += std::int64_t{32} * warps) {
    const std::int64_t item = of_warp + std::int64_t{lane} * warps;
    const bool is_left = item < level.clusters && level.is_free(static_cast<std::int32_t>(item));
    for (unsigned left = __ballot_sync(kWarp, is_left); left != 0; left &= left - 1)
      ask_further(level,
                  static_cast<std::int32_t>(of_warp + std::int64_t{__ffs(left) - 1} * warps));
  }
  grid.sync();
  for (std::int32_t i = begin + thread; i < end; i += kJoinThreads)
    if (level.is_free(i)) level.mates[i] = level.further.partner(i);
  number_clusters<kJoinThreads>(grid, level);
}

}  // namespace spmmbench::match
