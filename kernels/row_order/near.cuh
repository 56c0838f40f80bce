#pragma once
// The clusters of a level after the first, and how they rank others: steps 3 and 6 of
// match_order.cu.

#include <cstdint>

#include "ptx/griddepcontrol.cuh"
#include "reorder/match.hpp"
#include "row_order/level.cuh"
#include "row_order/partners.cuh"
#include "row_order/suits.cuh"

namespace spmmbench::match {

constexpr int kNearWarps = 8;  // of a CTA

// A warp reads a set of columns by kSketchLanes lanes, those of several clusters at a time.
constexpr int kSketchLanes = kSketchWords / 4, kSketchesAtOnce = 32 / kSketchLanes;

inline __device__ uint4 bits_of_both(const uint4& a, const uint4& b) {
  return {a.x & b.x, a.y & b.y, a.z & b.z, a.w & b.w};
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

// What two clusters are made into.
struct Uniting {
  std::int32_t clusters;
  const std::int32_t* joined;  // of each cluster the two that it is made of
  Level rows;                  // of which these are, at the second level
  // What the clusters of the level before have, and these clusters.
  const uint4* sketches_before;
  const std::int32_t* lengths_before;
  uint4* sketches;
  std::int32_t* lengths;
  std::int32_t* columns_sum;  // of lengths; 0 before. Null: not asked for
};

// A warp makes the set of the columns of a row. Each lane gets its word. `words`: room for all. It
// ends once all bits are set: some 8,000 columns do that.
inline __device__ std::uint32_t sketch_word(const Level& rows, Span row, std::uint32_t* words) {
  static_assert(kSketchWords == 32, "a word for each lane");
  constexpr int kAtOnce = 4, kOfWarp = kAtOnce * 32;  // columns that a lane reads at a time
  const int lane = threadIdx.x % 32;
  words[lane] = 0;
  __syncwarp();
  for (std::int32_t first = 0; first < row.length; first += kOfWarp) {
    std::int32_t column[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const std::int32_t at = first + i * 32 + lane;
      column[i] = at < row.length ? rows.columns[row.begin + at] : kNone;
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const std::uint32_t bit = sketch_bit(column[i]);
      if (column[i] != kNone) atomicOr(words + bit / 32, 1U << bit % 32);
    }
    __syncwarp();
    if (row.length > kOfWarp && __all_sync(kWarp, words[lane] == ~0U)) break;
  }
  const std::uint32_t word = words[lane];
  __syncwarp();
  return word;
}

// A warp for each cluster of two rows, or of two clusters. Returns how many columns it has, about.
template <bool kOfRows>
inline __device__ std::int32_t unite_two(const Uniting& all, std::int32_t own,
                                         std::uint32_t* words) {
  const int lane = threadIdx.x % 32;
  const int2 two = reinterpret_cast<const int2*>(all.joined)[own];
  std::uint32_t first, second;
  std::int32_t lengths[2];
  if constexpr (kOfRows) {
    const Span rows[] = {all.rows.columns_of[two.x], all.rows.columns_of[two.y]};
    lengths[0] = rows[0].length;
    lengths[1] = rows[1].length;
    first = sketch_word(all.rows, rows[0], words);
    second = sketch_word(all.rows, rows[1], words);
  } else {
    lengths[0] = all.lengths_before[two.x];
    lengths[1] = all.lengths_before[two.y];
    const auto* const before = reinterpret_cast<const std::uint32_t*>(all.sketches_before);
    first = before[std::int64_t{two.x} * kSketchWords + lane];
    second = before[std::int64_t{two.y} * kSketchWords + lane];
  }
  reinterpret_cast<std::uint32_t*>(all.sketches)[std::int64_t{own} * kSketchWords + lane] =
      first | second;
  const SketchBits bits{__reduce_add_sync(kWarp, __popc(first)),
                        __reduce_add_sync(kWarp, __popc(second)),
                        __reduce_add_sync(kWarp, __popc(first & second))};
  const std::int32_t length = united_length(lengths[0], lengths[1], bits);
  if (lane == 0) all.lengths[own] = length;
  return length;
}

template <bool kOfRows>
__global__ void __launch_bounds__(kNearWarps * 32)
    unite_clusters(const __grid_constant__ Uniting all) {
  __shared__ std::uint32_t words[kOfRows ? kNearWarps : 1][32];
  __shared__ std::int32_t columns_sum;
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const auto own = static_cast<std::int32_t>(thread_index() / 32);
  if (threadIdx.x == 0) columns_sum = 0;
  __syncthreads();
  if (own < all.clusters) {
    const std::int32_t length = unite_two<kOfRows>(all, own, words[kOfRows ? threadIdx.x / 32 : 0]);
    if (all.columns_sum != nullptr && threadIdx.x % 32 == 0) atomicAdd(&columns_sum, length);
  }
  if (all.columns_sum == nullptr) return;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(all.columns_sum, columns_sum);
}

struct Nearing {
  std::int32_t clusters;
  // What the clusters of the level before have.
  const std::uint64_t* ranks_before;  // see Suits
  const std::int32_t* number;         // see Numbering
  // What these clusters have.
  const std::int32_t* joined;  // see Uniting
  const uint4* sketches;
  const std::int32_t* lengths;
  Suits suits;
};

// A warp for each cluster: those that its two ranked.
__global__ void __launch_bounds__(kNearWarps * 32)
    find_near_clusters(const __grid_constant__ Nearing all) {
  static_assert(2 * kNear == 32, "a lane for each that one of the two ranked");
  __shared__ std::int32_t places[kNearWarps][32];
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const auto own = static_cast<std::int32_t>(thread_index() / 32);
  if (own >= all.clusters) return;
  const int lane = threadIdx.x % 32;
  const std::int32_t one = all.joined[2 * std::int64_t{own} + lane / kNear];
  const std::uint64_t before = all.ranks_before[std::int64_t{one} * kNear + lane % kNear];
  const auto sketch = [&](std::int32_t i, int part) {
    return all.sketches[std::int64_t{i} * kSketchLanes + part];
  };
  const uint4 own_part = sketch(own, lane % kSketchLanes);
  const std::int32_t length = all.lengths[own];
  std::int32_t other = kNone;
  if (before != 0) other = all.number[ranked_partner(one, before)] / 2;
  if (other == own || other >= all.clusters) other = kNone;  // the last is left over
  const unsigned same = __match_any_sync(kWarp, other);
  if (lane != __ffs(same) - 1) other = kNone;
  const std::uint64_t rank = rank_by_sketches(
      own, own_part, other, places[threadIdx.x / 32],
      [&](int source, int part) { return sketch(__shfl_sync(kWarp, other, source), part); });
  const Best best = Best::of(rank);
  all.suits.ask(own, lane < near_of(length) ? best.own : 0);
}

}  // namespace spmmbench::match
