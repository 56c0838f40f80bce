#pragma once
// Who becomes whose partner, and what the next level has: steps 3 and 4 of match_order.cu.

#include <cooperative_groups.h>

#include <cstdint>

#include "reorder/match.hpp"
#include "row_order/level.cuh"

namespace spmmbench::match {

// Who has whom after a round, and whom each without a partner named in it.
struct Round {
  std::int32_t *mate, *named;

  // The partner after the round.
  __device__ std::int32_t mate_of(std::int32_t i) const {
    if (mate[i] != kNone) return mate[i];
    const std::int32_t other = named[i];
    return other != kNone && named[other] == i ? other : kNone;
  }
};

__global__ void begin_rounds(std::int32_t clusters, Round all, std::int32_t* longer) {
  const std::int64_t i = thread_index();
  if (i < 2) longer[i] = 0;
  if (i < clusters) all.mate[i] = all.named[i] = kNone;
}

// All rounds of a pass, in one cooperative launch; afterwards `rounds[1]` has the partners.
// `counts`: whether a cluster has none, and in the upper half whether it is the first of two
// partners.
struct Rounds {
  Round rounds[2];
  const std::int32_t* partners;
  std::uint64_t* counts;
  std::int32_t* longer;
  std::int32_t clusters;
};
__global__ void __launch_bounds__(kThreads) hold_rounds(const __grid_constant__ Rounds all) {
  static_assert(kRounds % 2 == 0, "the last round leaves its result in rounds[0]");
  const auto grid = cooperative_groups::this_grid();
  const auto first = static_cast<std::int32_t>(thread_index());
  const auto stride = static_cast<std::int32_t>(gridDim.x * blockDim.x);
  if (first < 2) all.longer[first] = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Round& before = all.rounds[round % 2];
    const Round& after = all.rounds[1 - round % 2];
    for (std::int32_t i = first; i < all.clusters; i += stride) {
      const std::int32_t mate = before.mate_of(i);
      std::int32_t named = kNone;
      if (mate == kNone) {
        // All are read at once: one after another they would be most of a round.
        std::int32_t free[kPartners];
#pragma unroll
        for (int at = 0; at < kPartners; ++at)
          free[at] = all.partners[std::int64_t{i} * kPartners + at];
#pragma unroll
        for (int at = 0; at < kPartners; ++at)
          if (free[at] != kNone && before.mate_of(free[at]) != kNone) free[at] = kNone;
#pragma unroll
        for (int at = kPartners - 1; at >= 0; --at) named = free[at] != kNone ? free[at] : named;
      }
      after.mate[i] = mate;
      after.named[i] = named;
    }
    grid.sync();
  }
  // Settles the last round, in the other arrays, since others still read these.
  const Round &before = all.rounds[0], &after = all.rounds[1];
  for (std::int32_t i = first; i <= all.clusters; i += stride) {
    const std::int32_t mate = i < all.clusters ? before.mate_of(i) : 0;
    all.counts[i] = i == all.clusters ? 0
                    : mate == kNone   ? 1
                    : mate > i        ? std::uint64_t{1} << 32
                                      : 0;
    if (i == all.clusters) continue;
    after.mate[i] = mate;
    after.named[i] = kNone;
  }
}

// ---- Joining ----

__global__ void list_unmatched(std::int32_t clusters, const std::int32_t* mate,
                               const std::uint64_t* before, std::int32_t* unmatched) {
  const auto i = static_cast<std::int32_t>(thread_index());
  if (i < clusters && mate[i] == kNone) unmatched[static_cast<std::uint32_t>(before[i])] = i;
}

struct Joining {
  const std::int32_t* mate;
  const std::uint64_t* before;  // sums of `counts` before each cluster, and of all
  const std::int32_t* unmatched;
  std::int32_t clusters;

  __device__ std::int32_t partner(std::int32_t i) const {
    if (mate[i] != kNone) return mate[i];
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
// their new places. `left`: where in the order the rows of that one go.
__global__ void number_clusters(Joining all, const std::int32_t* rows, std::int32_t rows_of_one,
                                std::int32_t* number, std::int32_t* new_rows, std::int32_t* left) {
  const auto i = static_cast<std::int32_t>(thread_index());
  if (i >= all.clusters) return;
  const std::int32_t other = all.partner(i);
  const bool is_first = other > i;
  const std::int32_t own =
      other == kNone ? all.clusters / 2 : all.firsts_before(is_first ? i : other);
  number[i] = own;
  std::int32_t* const to =
      other == kNone ? left : new_rows + (2 * std::int64_t{own} + (is_first ? 0 : 1)) * rows_of_one;
  for (std::int32_t row = 0; row < rows_of_one; ++row)
    to[row] = rows[std::int64_t{i} * rows_of_one + row];
}

__global__ void renumber_entries(std::int32_t entries, const std::int32_t* number,
                                 const std::int32_t* cluster, std::int32_t* new_cluster) {
  const std::int64_t at = thread_index();
  if (at < entries) new_cluster[at] = number[cluster[at]];
}

__global__ void mark_new(std::int32_t entries, const std::int32_t* cluster,
                         const std::int32_t* column, std::int32_t clusters, std::int32_t* is_new) {
  const std::int64_t at = thread_index();
  if (at > entries) return;
  is_new[at] = at < entries && cluster[at] < clusters &&
                       (at == 0 || cluster[at] != cluster[at - 1] || column[at] != column[at - 1])
                   ? 1
                   : 0;
}

__global__ void keep_new(std::int32_t entries, const std::int32_t* cluster,
                         const std::int32_t* column, std::int32_t clusters,
                         const std::int32_t* before, std::int32_t* new_cluster,
                         std::int32_t* new_column, std::int32_t* ptr) {
  const std::int64_t at = thread_index();
  if (at == 0) ptr[clusters] = before[entries];
  if (at >= entries || before[at + 1] == before[at]) return;
  const std::int32_t to = before[at];
  new_cluster[to] = cluster[at];
  new_column[to] = column[at];
  if (at == 0 || cluster[at] != cluster[at - 1]) ptr[cluster[at]] = to;
}

}  // namespace spmmbench::match
