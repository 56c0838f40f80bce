#pragma once
// Who is near to the clusters of a level after the first, and to those that are left without a
// partner: steps 3 and 5 of match_order.cu.

#include <cstdint>

#include "ptx/griddepcontrol.cuh"
#include "reorder/match.hpp"
#include "row_order/joining.cuh"
#include "row_order/level.cuh"
#include "row_order/partners.cuh"
#include "row_order/table.cuh"

namespace spmmbench::match {

constexpr int kNearWarps = 8;  // of a CTA

// A warp reads a set of columns by kSketchLanes lanes, those of several clusters at a time.
constexpr int kSketchLanes = kSketchWords / 4, kSketchesAtOnce = 32 / kSketchLanes;

inline __device__ uint4 bits_of_both(const uint4& a, const uint4& b) {
  return {a.x & b.x, a.y & b.y, a.z & b.z, a.w & b.w};
}
inline __device__ uint4 bits_of_any(const uint4& a, const uint4& b) {
  return {a.x | b.x, a.y | b.y, a.z | b.z, a.w | b.w};
}
inline __device__ std::int32_t count_bits(const uint4& a) {
  return __popc(a.x) + __popc(a.y) + __popc(a.z) + __popc(a.w);
}
// Over the lanes that have the parts of one set.
inline __device__ std::int32_t sum_of_sketch(std::int32_t value) {
#pragma unroll
  for (int distance = 1; distance < kSketchLanes; distance *= 2)
    value += __shfl_xor_sync(kWarp, value, distance);
  return value;
}
// Bits of two sets, of which each lane has a part.
inline __device__ SketchBits bits_of(const uint4& own, const uint4& other) {
  constexpr int kShift = 16;
  static_assert(kSketchBits < 1 << (kShift - 1));
  const std::int32_t of_each = sum_of_sketch(count_bits(own) | count_bits(other) << kShift);
  return {of_each & ((1 << kShift) - 1), of_each >> kShift,
          sum_of_sketch(count_bits(bits_of_both(own, other)))};
}

// How a warp ranks clusters by the columns that they share with `own`, of whose set each lane has a
// part. Each lane gives one or kNone, none twice, and gets its rank, or 0. read(i, lane): what lane
// `lane` holds of the set of the cluster that lane i gave. `places`: room for all lanes.
template <class Read>
inline __device__ std::uint64_t rank_by_sketches(std::int32_t own, const uint4& own_part,
                                                 std::int32_t other, std::int32_t* places,
                                                 Read read) {
  constexpr int kAhead = 4;  // sets that a lane reads at a time
  const int lane = threadIdx.x % 32, part = lane % kSketchLanes;
  const unsigned lanes = __ballot_sync(kWarp, other != kNone);
  const int count = __popc(lanes), place = __popc(lanes & ((1U << lane) - 1U));
  if (other != kNone) places[place] = lane;
  __syncwarp();
  SketchBits of_lane{};
  for (int first = 0; first < count; first += kAhead * kSketchesAtOnce) {
    uint4 there[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int at = first + i * kSketchesAtOnce + lane / kSketchLanes;
      const int source = places[at < count ? at : 0];
      there[i] = read(source, part);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const SketchBits bits = bits_of(own_part, there[i]);
      const int group = place - first - i * kSketchesAtOnce;
      const int source = (group & (kSketchesAtOnce - 1)) * kSketchLanes;
      const SketchBits of_group{bits.own, __shfl_sync(kWarp, bits.other, source),
                                __shfl_sync(kWarp, bits.both, source)};
      if (group >= 0 && group < kSketchesAtOnce) of_lane = of_group;
    }
  }
  __syncwarp();
  return other == kNone ? 0 : rank_sketch(own, other, of_lane);
}

struct Nearing {
  std::int32_t clusters;
  // Of the clusters of the level before.
  const std::int32_t* near_before;  // [kNear] of each
  const std::int32_t* number;       // see Numbering
  const std::int32_t* joined;       // of each cluster the two that it is made of
  const uint4* sketches_before;
  const Span* columns_of;  // of rows, whose lengths these are; null after the second level
  const std::int32_t* lengths_before;
  // Of each cluster.
  std::int32_t* near;  // [kNear], kNone after the last
  uint4* sketches;
  std::int32_t* lengths;
  State* states;              // each names its best in its own
  std::int32_t* columns_sum;  // of lengths; 0 before. Null: not asked for

  __device__ uint4 sketch(int2 two, int part) const {
    return bits_of_any(sketches_before[std::int64_t{two.x} * kSketchLanes + part],
                       sketches_before[std::int64_t{two.y} * kSketchLanes + part]);
  }
  __device__ std::int32_t length_before(std::int32_t i) const {
    return columns_of != nullptr ? columns_of[i].length : lengths_before[i];
  }
};

// A warp for each cluster: its columns, and the clusters of those that were near to its two.
inline __device__ std::int32_t find_near_cluster(const Nearing& all, std::int32_t own,
                                                 std::int32_t* places) {
  const int lane = threadIdx.x % 32, part = lane % kSketchLanes;
  const auto* const joined = reinterpret_cast<const int2*>(all.joined);
  const int2 two = joined[own];
  std::int32_t other =
      all.near_before[std::int64_t{lane < kNear ? two.x : two.y} * kNear + lane % kNear];
  const uint4 first = all.sketches_before[std::int64_t{two.x} * kSketchLanes + part];
  const uint4 second = all.sketches_before[std::int64_t{two.y} * kSketchLanes + part];
  if (other != kNone) other = all.number[other] / 2;
  if (other == own || other >= all.clusters) other = kNone;  // the last is left over
  const unsigned same = __match_any_sync(kWarp, other);
  if (lane != __ffs(same) - 1) other = kNone;
  const int2 others = other == kNone ? two : joined[other];
  const std::int32_t length =
      united_length(all.length_before(two.x), all.length_before(two.y), bits_of(first, second));
  const uint4 own_part = bits_of_any(first, second);
  if (lane < kSketchLanes) all.sketches[std::int64_t{own} * kSketchLanes + lane] = own_part;
  const std::uint64_t rank =
      rank_by_sketches(own, own_part, other, places, [&](int source, int of_sketch) {
        return all.sketch(
            {__shfl_sync(kWarp, others.x, source), __shfl_sync(kWarp, others.y, source)},
            of_sketch);
      });
  const Best best = Best::of(rank);
  const std::int32_t partner = best.own == 0 ? kNone : ranked_partner(own, best.own);
  if (lane < kNear) all.near[std::int64_t{own} * kNear + lane] = partner;
  if (lane == 0) {
    all.states[own] = {kNone, partner};
    all.lengths[own] = length;
  }
  return length;
}
static_assert(2 * kNear == 32, "a lane for each that was near to one of the two");

__global__ void __launch_bounds__(kNearWarps * 32)
    find_near_clusters(const __grid_constant__ Nearing all) {
  __shared__ std::int32_t places[kNearWarps][32], columns_sum;
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const auto own = static_cast<std::int32_t>(thread_index() / 32);
  if (threadIdx.x == 0) columns_sum = 0;
  __syncthreads();
  if (own < all.clusters) {
    const std::int32_t length = find_near_cluster(all, own, places[threadIdx.x / 32]);
    if (all.columns_sum != nullptr && threadIdx.x % 32 == 0) atomicAdd(&columns_sum, length);
  }
  if (all.columns_sum == nullptr) return;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(all.columns_sum, columns_sum);
}

struct Furthering {
  std::int32_t clusters;
  const std::int32_t* near;  // as Nearing has them
  const uint4* sketches;
  std::int32_t* partners;  // [clusters][kPartners], kNone after the last
};

constexpr int kFurtherBits = 9;  // of the number of words of a table
template <class Word>
union FurtherMemory {
  std::int32_t places[32];
  alignas(16) Word words[1 << kFurtherBits];
};

// A warp ranks the clusters without a partner that `own`, which has none,
// meets: those near to it and to these.
template <class Word>
inline __device__ void find_further(const Furthering& all, State* states, std::int32_t own,
                                    FurtherMemory<Word>& memory) {
  constexpr int kOfLane = kNear * kNear / 32, kAtOnce = 32 / kNear;
  static_assert(kNear * (kNear + 1) <= 3 << (kFurtherBits - 2),
                "three quarters of the table at most");
  const int lane = threadIdx.x % 32;
  const std::int64_t item = own;
  const Table<Word> table{memory.words, kFurtherBits};
  table.clear(lane, 32);
  const std::int32_t near = lane < kNear ? all.near[item * kNear + lane] : kNone;
  std::int32_t others[kOfLane + 1], ways[kOfLane + 1];
  bool counts[kOfLane + 1];
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) {
    const std::int32_t one = __shfl_sync(kWarp, near, i * kAtOnce + lane / kNear);
    others[i] = one == kNone ? kNone : all.near[std::int64_t{one} * kNear + lane % kNear];
  }
  others[kOfLane] = near;
#pragma unroll
  for (int i = 0; i <= kOfLane; ++i) {
    ways[i] = 1;
    counts[i] = others[i] != kNone && others[i] != own && states[others[i]].mate == kNone;
  }
  __syncwarp();
  table.add(counts, others, ways);
  const std::int32_t count = table.compact(0, 1 << kFurtherBits);
  Best most;
  for (std::int32_t first = 0; first < count; first += 32) {
    const std::int32_t at = first + lane;
    const Word word = at < count ? table.words[at] : 0;
    const std::uint64_t rank[1] = {
        word == 0 ? 0 : rank_ways(own, Table<Word>::cluster(word), Table<Word>::weight(word))};
    if (first == 0) most = Best::of(rank[0]);
    else most.add(rank);
  }
  __syncwarp();
  const std::int32_t other = most.own == 0 ? kNone : ranked_partner(own, most.own);
  const auto sketch = [&](std::int32_t i, int part) {
    return all.sketches[std::int64_t{i} * kSketchLanes + part];
  };
  const Best best = Best::of(rank_by_sketches(
      own, sketch(own, lane % kSketchLanes), other, memory.places,
      [&](int source, int part) { return sketch(__shfl_sync(kWarp, other, source), part); }));
  const std::int32_t partner = best.own == 0 ? kNone : ranked_partner(own, best.own);
  if (lane < kPartners) all.partners[item * kPartners + lane] = partner;
  if (lane == 0) states[own].named = partner;
}

// All passes of a level in one launch.
struct Passes {
  States states;  // each cluster names its best
  Furthering further;
  unsigned* arrived;  // see GridBarrier
  // Nearing::columns_sum of the second and third level, and where the host reads them; null: not
  // told.
  const std::int32_t* columns_of_low;
  std::int32_t* told;
  Numbering numbering;

  __device__ void begin(std::int32_t thread) const {
    if (told != nullptr && thread < 2) told[thread] = columns_of_low[thread];
  }
};

template <class Word>
__global__ void __launch_bounds__(kNearWarps * 32, 4)
    hold_passes(const __grid_constant__ Passes all) {
  static_assert(kNearWarps * 32 == kThreads);
  __shared__ FurtherMemory<Word> memory[kNearWarps];
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  GridBarrier grid(all.arrived);
  all.begin(static_cast<std::int32_t>(thread_index()));
  const std::int32_t clusters = all.further.clusters;
  States states = all.states;
  hold_rounds(grid, clusters, {all.further.near, kNear}, states);
  const int lane = threadIdx.x % 32;
  const auto warp = static_cast<std::int32_t>(thread_index() / 32),
             warps = static_cast<std::int32_t>(gridDim.x) * kNearWarps;
  for (int pass = 1; pass < kPasses; ++pass) {
    grid.sync();
    // Neighbours, which often are left alike, are of different warps.
    for (std::int64_t first = warp; first < clusters; first += std::int64_t{32} * warps) {
      const std::int64_t item = first + std::int64_t{lane} * warps;
      const bool is_left = item < clusters && states.now[item].mate == kNone;
      for (unsigned left = __ballot_sync(kWarp, is_left); left != 0; left &= left - 1) {
        const std::int64_t own = first + std::int64_t{__ffs(left) - 1} * warps;
        find_further<Word>(all.further, states.now, static_cast<std::int32_t>(own),
                           memory[threadIdx.x / 32]);
        __syncwarp();
      }
    }
    grid.sync();
    hold_rounds(grid, clusters, {all.further.partners, kPartners}, states);
  }
  grid.sync();
  number_clusters<kThreads>(grid, states.now, clusters, all.numbering);
}

}  // namespace spmmbench::match
