#pragma once
// Clusters ask those that they rank to be their partners: step 4 of match_order.cu.

#include <cstdint>

#include "ptx/atom.cuh"
#include "reorder/match.hpp"
#include "row_order/level.cuh"

namespace spmmbench::match {

// As partner_by_suits says. What others write meanwhile is read from the L2 cache, where it is once
// it was released.
struct Suits {
  std::uint64_t* ranks;  // [of_one] of each cluster, best first, and 0 after the last
  std::int32_t of_one;
  unsigned long long* best;  // of each cluster the best rank by which it was asked; 0 before
  // For each cluster that asked: ~rank of the last, lowest rank by which it was taken, or kNobody
  // if all refused it. These numbers only grow, whoever writes them first.
  unsigned long long* taken;

  // A warp: cluster `own` asks. `rank`: of lane i the i-th, or 0.
  __device__ void ask(std::int32_t own, std::uint64_t rank) const {
    const int lane = threadIdx.x % 32;
    if (lane < of_one) ranks[std::int64_t{own} * of_one + lane] = rank;
    if (lane == 0) taken[own] = 0;
    __syncwarp();
    for (bool is_first = true;; is_first = false) {
      const unsigned long long lost = ask_best(own, rank, is_first);
      if (lost == 0) return;
      rank = lane < of_one ? __ldcg(reinterpret_cast<const unsigned long long*>(ranks) +
                                    std::int64_t{own} * of_one + lane)
                           : 0;
      if (rank >= lost) rank = 0;  // these were asked
    }
  }

  // The partner of `own`, or kNone, once all have asked.
  __device__ std::int32_t partner(std::int32_t own) const {
    return partner_by_suits(
        own,
        [&](std::int32_t i) {
          const unsigned long long of_one = __ldcg(taken + i);
          return of_one == kNobody ? kNone : ranked_partner(i, ~of_one);
        },
        [&](std::int32_t i) {
          const unsigned long long rank = __ldcg(best + i);
          return rank == 0 ? kNone : ranked_partner(i, rank);
        });
  }

 private:
  static constexpr unsigned long long kNobody = ~0ULL;

  // The best that takes `own` loses another suitor, which becomes `own`. Returns by which rank that
  // one had asked, or 0 where there is none. `is_first`: the warp has written what others read when
  // `own` is lost to them.
  __device__ unsigned long long ask_best(std::int32_t& own, std::uint64_t rank,
                                         bool is_first) const {
    const int lane = threadIdx.x % 32;
    const std::int32_t other = rank == 0 ? 0 : ranked_partner(own, rank);
    const bool can_win = rank != 0 && rank > __ldcg(best + other);
    for (unsigned winners = __ballot_sync(kWarp, can_win); winners != 0; winners &= winners - 1) {
      const int asks = __ffs(winners) - 1;
      unsigned long long before = 0;
      if (lane == asks) {
        before = is_first ? ptx::atom_release_gpu_global_max_u64(best + other, rank)
                          : atomicMax(best + other, static_cast<unsigned long long>(rank));
        if (before < rank) atomicMax(taken + own, ~static_cast<unsigned long long>(rank));
      }
      before = __shfl_sync(kWarp, before, asks);
      if (before >= __shfl_sync(kWarp, rank, asks)) continue;
      if (before != 0) own = ranked_partner(__shfl_sync(kWarp, other, asks), before);
      return before;
    }
    if (lane == 0) atomicMax(taken + own, kNobody);
    return 0;
  }
};

}  // namespace spmmbench::match
