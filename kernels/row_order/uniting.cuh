#pragma once
// The columns and the lists of the next level: step 5 of match_order.cu.

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>

#include "reorder/match.hpp"
#include "row_order/level.cuh"

namespace spmmbench::match {

struct Uniting {
  Level all;                   // the level before
  const std::int32_t* number;  // of each of its clusters the new one
  const std::int32_t* joined;  // of each new cluster the two that it is made of
  std::int64_t cols;           // of A
  std::int32_t clusters;       // new ones
  // The next level.
  Span* columns_of;
  std::int32_t* columns;
  Span* list_of;
  std::int32_t* lists;
  State* states;
  std::int32_t* columns_end;  // of `columns` that are in use
  std::int32_t* columns_sum;  // of all clusters; 0 before. Null: not asked for
};

// Numbers that become one ascending array without repetitions. Those that are not below `end` are
// left out.
struct Parts {
  const std::int32_t *first, *second;
  std::int32_t firsts, count;
  const std::int32_t* number;  // null: the numbers themselves, ascending in each of the two parts
  std::int32_t end;

  __device__ std::int32_t operator[](std::int32_t i) const {
    const std::int32_t value = i < firsts ? first[i] : second[i - firsts];
    return number == nullptr ? value : number[value];
  }
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
  return {all.all.lists + list.begin, nullptr, list.length, list.length, all.number, all.clusters};
}

constexpr int kUniteWarps = kThreads / 32;
constexpr std::int32_t kMostOfWarp = 128;  // numbers that a warp sorts
constexpr int kOfThread = 4;               // that a thread of a CTA takes at a time
static_assert(kMostOfColumn <= kThreads * kOfThread, "a CTA sorts a list");

// A warp sorts by counting, for each number, those before it. Returns how many are written.
inline __device__ std::int32_t unite_by_warp(const Parts& parts, std::int32_t* given,
                                             std::int32_t* sorted, std::int32_t* out) {
  const int lane = threadIdx.x % 32;
  for (std::int32_t i = lane; i < parts.count; i += 32) given[i] = parts[i];
  __syncwarp();
  for (std::int32_t i = lane; i < parts.count; i += 32) {
    const std::int32_t own = given[i];
    std::int32_t place = 0;
    for (std::int32_t other = 0; other < parts.count; ++other)
      place += given[other] < own || (given[other] == own && other < i) ? 1 : 0;
    sorted[place] = own;
  }
  __syncwarp();
  std::int32_t written = 0;
  for (std::int32_t first = 0; first < parts.count; first += 32) {
    const std::int32_t i = first + lane;
    const bool kept =
        i < parts.count && sorted[i] < parts.end && (i == 0 || sorted[i - 1] != sorted[i]);
    const unsigned lanes = __ballot_sync(kWarp, kept);
    if (kept) out[written + __popc(lanes & ((1U << lane) - 1U))] = sorted[i];
    written += __popc(lanes);
  }
  return written;
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

// A warp for each item; the longer ones of its CTA afterwards by all its warps, one by one.
__global__ void __launch_bounds__(kThreads) unite(const __grid_constant__ Uniting all) {
  __shared__ union Memory {
    std::int32_t of_warps[kUniteWarps][2][kMostOfWarp];
    CtaMemory of_cta;
  } memory;
  __shared__ bool is_long[kUniteWarps];
  __shared__ std::int32_t cta_begin;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::int64_t items = all.clusters + all.cols;
  // Neighbours, which are often long alike, are in different CTAs.
  const auto item_of = [&](int of_warp) { return blockIdx.x + std::int64_t{of_warp} * gridDim.x; };
  // Where the item is written. Columns of a cluster take any free place.
  const auto begin_of = [&](std::int64_t i, const Parts& parts) {
    return i < all.clusters ? atomicAdd(all.columns_end, parts.count)
                            : all.all.list_of[i - all.clusters].begin;
  };
  const auto array_of = [&](std::int64_t i) { return i < all.clusters ? all.columns : all.lists; };
  const auto keep = [&](std::int64_t i, std::int32_t begin, std::int32_t length) {
    if (i < all.clusters) {
      all.columns_of[i] = {begin, length};
      all.states[i] = {};
      if (all.columns_sum != nullptr) atomicAdd(all.columns_sum, length);
    } else {
      all.list_of[i - all.clusters] = {begin, length};
    }
  };
  const std::int64_t own = item_of(warp);
  if (lane == 0) is_long[warp] = false;
  if (own < items) {
    const Parts parts = parts_of(all, own);
    if (parts.count > kMostOfWarp) {
      if (lane == 0) is_long[warp] = true;
    } else {
      std::int32_t begin = lane == 0 ? begin_of(own, parts) : 0;
      begin = __shfl_sync(kWarp, begin, 0);
      auto& of_warp = memory.of_warps[warp];
      const std::int32_t length =
          unite_by_warp(parts, of_warp[0], of_warp[1], array_of(own) + begin);
      if (lane == 0) keep(own, begin, length);
    }
  }
  __syncthreads();
  for (int i = 0; i < kUniteWarps; ++i) {
    if (!is_long[i]) continue;
    const std::int64_t item = item_of(i);
    const Parts parts = parts_of(all, item);
    if (threadIdx.x == 0) cta_begin = begin_of(item, parts);
    __syncthreads();
    const std::int32_t begin = cta_begin;
    std::int32_t* const out = array_of(item) + begin;
    const std::int32_t length = item < all.clusters
                                    ? unite_columns_by_cta(parts, memory.of_cta, out)
                                    : unite_list_by_cta(parts, memory.of_cta, out);
    if (threadIdx.x == 0) keep(item, begin, length);
  }
}

}  // namespace spmmbench::match
