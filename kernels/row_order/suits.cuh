#pragma once
// Clusters ask those that they rank to be their partners: step 4 of match_order.cu.

#include <cstdint>

#include "reorder/match.hpp"
#include "row_order/level.cuh"

namespace spmmbench::match {

// As partner_by_suits says.
struct Suits {
  std::uint64_t* ranks;  // [of_one] of each cluster, best first, and 0 after the last
  std::int32_t of_one;
  unsigned long long* best;  // of each cluster the best rank by which it was asked; 0 before
  std::int32_t* taken_by;    // of each cluster that asked who took it, or kNone

  // A warp: cluster `own` asks. `rank`: of lane i the i-th, or 0.
  __device__ void ask(std::int32_t own, std::uint64_t rank) const {
    const int lane = threadIdx.x % 32;
    if (lane < of_one) ranks[std::int64_t{own} * of_one + lane] = rank;
    __syncwarp();
    for (;;) {
      const unsigned long long lost = ask_best(own, rank);
      if (lost == 0) return;
      __threadfence();
      rank = lane < of_one ? __ldcg(reinterpret_cast<const unsigned long long*>(ranks) +
                                    std::int64_t{own} * of_one + lane)
                           : 0;
      if (rank >= lost) rank = 0;  // these were asked
    }
  }

  __device__ std::int32_t suitor(std::int32_t i) const {
    const unsigned long long rank = __ldcg(best + i);
    return rank == 0 ? kNone : ranked_partner(i, rank);
  }
  // Once all have asked.
  __device__ std::int32_t partner(std::int32_t own) const {
    return partner_by_suits(
        own, [&](std::int32_t i) { return __ldcg(taken_by + i); },
        [&](std::int32_t i) { return suitor(i); });
  }

 private:
  // The best that takes `own` loses another suitor, which becomes `own`. Returns by which rank that
  // one had asked, or 0 where there is none.
  __device__ unsigned long long ask_best(std::int32_t& own, std::uint64_t rank) const {
    const int lane = threadIdx.x % 32;
    const std::int32_t other = rank == 0 ? 0 : ranked_partner(own, rank);
    const bool can_win = rank > (rank == 0 ? 0 : __ldcg(best + other));
    for (unsigned winners = __ballot_sync(kWarp, can_win); winners != 0; winners &= winners - 1) {
      const int asks = __ffs(winners) - 1;
      const std::int32_t taker = __shfl_sync(kWarp, other, asks);
      const std::uint64_t asked = __shfl_sync(kWarp, rank, asks);
      unsigned long long before = 0;
      if (lane == 0) {
        taken_by[own] = taker;
        __threadfence();  // who takes its place writes after this, and goes on with its ranks
        before = atomicMax(best + taker, static_cast<unsigned long long>(asked));
      }
      before = __shfl_sync(kWarp, before, 0);
      if (before >= asked) continue;
      if (before != 0) own = ranked_partner(taker, before);
      return before;
    }
    if (lane == 0) taken_by[own] = kNone;
    return 0;
  }
};

}  // namespace spmmbench::match
