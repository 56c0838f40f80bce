#pragma once
// The columns and the lists of the next level: step 5 of match_order.cu.

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
#include <type_traits>

#include "ptx/griddepcontrol.cuh"
#include "reorder/match.hpp"
#include "row_order/level.cuh"

namespace spmmbench::match {

struct Uniting {
  Level all;                   // the level before
  const std::int32_t* number;  // see Numbering
  const std::int32_t* joined;  // of each new cluster the two that it is made of
  std::int64_t cols;           // of A
  std::int32_t clusters;       // new ones
  std::int32_t end;            // those of lists are below it
  // The next level.
  Span* columns_of;
  std::int32_t* columns;
  Span* list_of;
  std::int32_t* lists;
  State* states;
  std::int32_t* columns_end;  // of `columns` that are in use
  std::int32_t* columns_sum;  // of all clusters; 0 before. Null: not asked for
};

// Numbers that become one ascending array without repetitions: ascending firsts, and seconds. Those
// that are not below `end` are left out.
struct Parts {
  const std::int32_t *first, *second;
  std::int32_t firsts, count;
  const std::int32_t* number;  // null: the numbers themselves, ascending in each of the two parts
  std::int32_t end;

  struct Entry {
    std::int32_t number;
    bool is_first;
  };
  // Of a list: the new number, and whether its cluster is the first of the two that are joined.
  __device__ Entry at(std::int32_t i) const {
    const std::int32_t value = i < firsts ? first[i] : second[i - firsts];
    if (number == nullptr) return {value, i < firsts};
    const std::int32_t there = number[value];
    return {there / 2, there % 2 == 0};
  }
  __device__ std::int32_t operator[](std::int32_t i) const { return at(i).number; }
};

// A new cluster has the columns of two, a list the new numbers of its clusters: item `i` of all
// clusters and then all columns.
inline __device__ Parts parts_of(const Uniting& all, std::int64_t i) {
  if (i < all.clusters) {
    const Span first = all.all.columns_of[all.joined[2 * i]];
    const Span second = all.all.columns_of[all.joined[2 * i + 1]];
    const std::int32_t* const columns = all.all.columns;
    return {columns + first.begin,
            columns + second.begin,
            first.length,
            first.length + second.length,
            nullptr,
            INT_MAX};
  }
  const Span list = all.all.list_of[i - all.clusters];
  return {all.all.lists + list.begin, nullptr, list.length, list.length, all.number, all.end};
}

constexpr int kUniteWarps = kThreads / 32;
constexpr std::int32_t kMostOfWarp = 256;  // numbers that a warp unites
constexpr int kOfThread = 4;               // that a thread of a CTA takes at a time
constexpr int kShortOfWarp = 4;      // items that a warp unites at a time where they are short
constexpr std::int64_t kShort = 20;  // numbers of an item, in the mean
static_assert(kMostOfColumn <= kThreads * kOfThread, "a CTA sorts a list");

// So many lanes of each warp unite numbers; all its lanes call it. Both arrays have room for all.
// Returns how many are written.
template <int kLanes>
inline __device__ std::int32_t unite_by_lanes(const Parts& parts, std::int32_t* given,
                                              std::int32_t* kept, std::int32_t* out) {
  const int lane = threadIdx.x % kLanes, first_lane = threadIdx.x % 32 / kLanes * kLanes;
  const auto lanes_where = [&](bool is) {
    return __ballot_sync(kWarp, is) >> first_lane & (kWarp >> (32 - kLanes));
  };
  const auto before = [&](unsigned lanes) { return __popc(lanes & ((1U << lane) - 1U)); };
  const auto most_of_warp = [&](std::int32_t count) {
    return kLanes == 32 ? count : __reduce_max_sync(kWarp, count);
  };
  // Firsts from the front of `given` on, seconds from its end.
  std::int32_t firsts = 0, seconds = 0;
  const std::int32_t most = most_of_warp(parts.count);
  for (std::int32_t i = lane; i - lane < most; i += kLanes) {
    const Parts::Entry entry = i < parts.count ? parts.at(i) : Parts::Entry{INT_MAX, false};
    const bool counts = i < parts.count && entry.number < parts.end;
    const unsigned of_firsts = lanes_where(counts && entry.is_first);
    const unsigned of_seconds = lanes_where(counts && !entry.is_first);
    if (counts)
      given[entry.is_first ? firsts + before(of_firsts)
                           : parts.count - 1 - seconds - before(of_seconds)] = entry.number;
    firsts += __popc(of_firsts);
    seconds += __popc(of_seconds);
  }
  __syncwarp();
  // Seconds that are not among the firsts.
  std::int32_t others = 0;
  const std::int32_t most_seconds = most_of_warp(seconds);
  for (std::int32_t i = lane; i - lane < most_seconds; i += kLanes) {
    const std::int32_t own = i < seconds ? given[parts.count - 1 - i] : 0;
    const std::int32_t place = lower_bound(given, firsts, own);
    const bool counts = i < seconds && (place == firsts || given[place] != own);
    const unsigned lanes = lanes_where(counts);
    if (counts) kept[others + before(lanes)] = own;
    others += __popc(lanes);
  }
  __syncwarp();
  // Those of a list are sorted by counting, for each, those before it.
  const std::int32_t* sorted = kept;
  if (parts.number != nullptr) {
    std::int32_t* const places = given + firsts;
    for (std::int32_t i = lane; i < others; i += kLanes) {
      const std::int32_t own = kept[i];
      std::int32_t place = 0;
      for (std::int32_t other = 0; other < others; ++other) place += kept[other] < own ? 1 : 0;
      places[place] = own;
    }
    sorted = places;
  }
  __syncwarp();
  for (std::int32_t i = lane; i < firsts; i += kLanes)
    out[i + lower_bound(sorted, others, given[i])] = given[i];
  for (std::int32_t i = lane; i < others; i += kLanes)
    out[i + lower_bound(given, firsts, sorted[i])] = sorted[i];
  return firsts + others;
}

using Scan = cub::BlockScan<std::int32_t, kThreads>;
using Sort = cub::BlockRadixSort<unsigned, kThreads, kOfThread>;
union CtaMemory {
  Scan::TempStorage scan;
  Sort::TempStorage sort;
  unsigned last[kThreads];  // of each thread
};

// A CTA sorts a list. Returns how many are written.
inline __device__ std::int32_t unite_list_by_cta(const Parts& parts, CtaMemory& memory,
                                                 std::int32_t* out) {
  const int thread = threadIdx.x;
  const auto end = static_cast<unsigned>(parts.end);
  unsigned numbers[kOfThread];
#pragma unroll
  for (int i = 0; i < kOfThread; ++i) {
    const std::int32_t at = i * kThreads + thread;
    numbers[i] = at < parts.count ? static_cast<unsigned>(parts[at]) : end;
  }
  Sort(memory.sort).Sort(numbers, 0, 32 - __clz(parts.end));
  __syncthreads();
  memory.last[thread] = numbers[kOfThread - 1];
  __syncthreads();
  unsigned previous = thread == 0 ? end : memory.last[thread - 1];
  std::int32_t kept[kOfThread], place[kOfThread], written = 0;
#pragma unroll
  for (int i = 0; i < kOfThread; ++i) {
    kept[i] = numbers[i] < end && numbers[i] != previous ? 1 : 0;
    previous = numbers[i];
  }
  __syncthreads();
  Scan(memory.scan).ExclusiveSum(kept, place, written);
#pragma unroll
  for (int i = 0; i < kOfThread; ++i)
    if (kept[i] != 0) out[place[i]] = static_cast<std::int32_t>(numbers[i]);
  __syncthreads();
  return written;
}

// A CTA places the numbers of one ascending array among those of it and of another; those that both
// have count once. Returns how many both have.
inline __device__ std::int32_t place_by_cta(const std::int32_t* own, std::int32_t count,
                                            const std::int32_t* others, std::int32_t other_count,
                                            bool writes_common, CtaMemory& memory,
                                            std::int32_t* out) {
  const std::int32_t most_step = other_count == 0 ? 0 : 1 << (31 - __clz(other_count));
  std::int32_t common = 0;
  for (std::int32_t first = 0; first < count; first += kThreads * kOfThread) {
    const std::int32_t begin = first + static_cast<std::int32_t>(threadIdx.x) * kOfThread;
    std::int32_t number[kOfThread], below[kOfThread] = {}, is_common[kOfThread], before[kOfThread];
#pragma unroll
    for (int i = 0; i < kOfThread; ++i) number[i] = begin + i < count ? own[begin + i] : INT_MIN;
    for (std::int32_t step = most_step; step > 0; step /= 2) {
#pragma unroll
      for (int i = 0; i < kOfThread; ++i)
        if (below[i] + step <= other_count && others[below[i] + step - 1] < number[i])
          below[i] += step;
    }
#pragma unroll
    for (int i = 0; i < kOfThread; ++i)
      is_common[i] = below[i] < other_count && others[below[i]] == number[i] ? 1 : 0;
    std::int32_t of_all = 0;
    Scan(memory.scan).ExclusiveSum(is_common, before, of_all);
#pragma unroll
    for (int i = 0; i < kOfThread; ++i)
      if (begin + i < count && (writes_common || is_common[i] == 0))
        out[begin + i + below[i] - common - before[i]] = number[i];
    common += of_all;
    __syncthreads();
  }
  return common;
}

// A CTA joins the columns of two clusters. Returns how many are written.
inline __device__ std::int32_t unite_columns_by_cta(const Parts& parts, CtaMemory& memory,
                                                    std::int32_t* out) {
  const std::int32_t seconds = parts.count - parts.firsts;
  place_by_cta(parts.first, parts.firsts, parts.second, seconds, true, memory, out);
  return parts.count -
         place_by_cta(parts.second, seconds, parts.first, parts.firsts, false, memory, out);
}

// kOfWarp items for each warp; the longer ones of its CTA afterwards by all its warps, one by one.
// Where all items of a warp are short, each has its own lanes.
template <int kOfWarp>
__global__ void __launch_bounds__(kThreads) unite(const __grid_constant__ Uniting all) {
  constexpr int kItems = kUniteWarps * kOfWarp, kLanes = 32 / kOfWarp;
  constexpr std::int32_t kMostOfLanes = kMostOfWarp / kOfWarp;
  static_assert(kItems <= 32, "a warp has a lane for each item of the CTA");
  __shared__ union Memory {
    std::int32_t of_warps[kUniteWarps][2][kMostOfWarp];
    CtaMemory of_cta;
  } memory;
  __shared__ std::int32_t counts[kItems], begins[kItems], columns_sum;
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::int64_t items = all.clusters + all.cols;
  // Neighbours, which are often long alike, are in different CTAs.
  const auto item_of = [&](int of_cta) { return blockIdx.x + std::int64_t{of_cta} * gridDim.x; };
  const auto array_of = [&](std::int64_t i) { return i < all.clusters ? all.columns : all.lists; };
  const auto keep = [&](std::int64_t i, std::int32_t begin, std::int32_t length) {
    if (i < all.clusters) {
      all.columns_of[i] = {begin, length};
      all.states[i] = {};
      if (all.columns_sum != nullptr) atomicAdd(&columns_sum, length);
    } else {
      all.list_of[i - all.clusters] = {begin, length};
    }
  };
  if (threadIdx.x == 0) columns_sum = 0;
  // Where each item is written: a list where it was, the columns of clusters in any free place,
  // which the CTA takes for all of its own at once.
  if (warp == 0) {
    const std::int64_t item = item_of(lane);
    const bool is_item = lane < kItems && item < items, is_cluster = is_item && item < all.clusters;
    const std::int32_t count = is_item ? parts_of(all, item).count : 0;
    std::int32_t end = is_cluster ? count : 0;
#pragma unroll
    for (int distance = 1; distance < kItems; distance *= 2) {
      const std::int32_t before = __shfl_up_sync(kWarp, end, distance);
      if (lane >= distance) end += before;
    }
    std::int32_t first = 0;
    if (lane == kItems - 1 && end > 0) first = atomicAdd(all.columns_end, end);
    first = __shfl_sync(kWarp, first, kItems - 1);
    if (lane < kItems) {
      counts[lane] = count;
      begins[lane] = is_cluster ? first + end - count
                     : is_item  ? all.all.list_of[item - all.clusters].begin
                                : 0;
    }
  }
  __syncthreads();
  const auto unite_by_warp = [&](auto lanes_of_item, int of_cta) {
    constexpr int kOfItem = decltype(lanes_of_item)::value;
    const int part = lane / kOfItem * (kMostOfWarp / (32 / kOfItem));
    const std::int64_t item = item_of(of_cta);
    auto& of_warp = memory.of_warps[warp];
    const Parts parts = item < items ? parts_of(all, item) : Parts{};
    const std::int32_t begin = begins[of_cta];
    const std::int32_t length = unite_by_lanes<kOfItem>(parts, of_warp[0] + part, of_warp[1] + part,
                                                        array_of(item) + begin);
    if (lane % kOfItem == 0 && item < items) keep(item, begin, length);
    __syncwarp();
  };
  const int own = warp * kOfWarp;
  if (kOfWarp > 1 && __all_sync(kWarp, counts[own + lane / kLanes] <= kMostOfLanes)) {
    unite_by_warp(std::integral_constant<int, kLanes>{}, own + lane / kLanes);
  } else {
    for (int i = own; i < own + kOfWarp; ++i)
      if (counts[i] <= kMostOfWarp && item_of(i) < items)
        unite_by_warp(std::integral_constant<int, 32>{}, i);
  }
  __syncthreads();
  for (int i = 0; i < kItems; ++i) {
    if (counts[i] <= kMostOfWarp) continue;
    const std::int64_t item = item_of(i);
    const Parts parts = parts_of(all, item);
    const std::int32_t begin = begins[i];
    std::int32_t* const out = array_of(item) + begin;
    const std::int32_t length = item < all.clusters
                                    ? unite_columns_by_cta(parts, memory.of_cta, out)
                                    : unite_list_by_cta(parts, memory.of_cta, out);
    if (threadIdx.x == 0) keep(item, begin, length);
  }
  if (all.columns_sum == nullptr) return;
  __syncthreads();
  if (threadIdx.x == 0 && columns_sum > 0) atomicAdd(all.columns_sum, columns_sum);
}

}  // namespace spmmbench::match
