#pragma once
// Who becomes whose partner, and the numbers of the next level: steps 4 and 6
// of match_order.cu.

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

// Whom the clusters ask to be partners, best first.
struct Asked {
  const std::int32_t* partners;
  std::int32_t of_one;  // so many places are for each
};

// The states of all clusters, and room for those after a round.
struct States {
  State *now, *next;
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
inline __device__ void number_clusters(Group& group, const State* states, std::int32_t clusters,
                                       const Numbering& out) {
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

// All threads of the grid hold the rounds of a pass; the first, in which each names its best, was
// held by those that found whom to ask. Afterwards `states` has the partners.
template <class Group>
inline __device__ void hold_rounds(Group& grid, std::int32_t clusters, const Asked& asked,
                                   States& states) {
  const auto first = static_cast<std::int32_t>(thread_index());
  const auto stride = static_cast<std::int32_t>(gridDim.x * blockDim.x);
  const auto turn = [&] {
    State* const next = states.next;
    states.next = states.now;
    states.now = next;
  };
  for (int round = 0; round + 1 < kRounds; ++round) {
    const State* const before = states.now;
    for (std::int32_t i = first; i < clusters; i += stride) {
      // All are read at once: one after another they would be most of a round.
      const State own = before[i];
      std::int32_t free[kPartners];
#pragma unroll
      for (int at = 0; at < kPartners; ++at)
        free[at] = asked.partners[std::int64_t{i} * asked.of_one + at];
      const std::int32_t mate = mate_after(before, own, i);
      std::int32_t named = kNone;
      if (mate == kNone) {
        State others[kPartners];
#pragma unroll
        for (int at = 0; at < kPartners; ++at)
          if (free[at] != kNone) others[at] = before[free[at]];
#pragma unroll
        for (int at = kPartners - 1; at >= 0; --at)
          if (free[at] != kNone && mate_after(before, others[at], free[at]) == kNone)
            named = free[at];
      }
      states.next[i] = {mate, named};
    }
    grid.sync();
    turn();
  }
  // Settles the last round.
  for (std::int32_t i = first; i < clusters; i += stride)
    states.next[i] = {mate_after(states.now, states.now[i], i), kNone};
  turn();
}

}  // namespace spmmbench::match
