#pragma once
// The columns and the lists of the next level: step 5 of match_order.cu.

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cub/block/block_scan.cuh>

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
  const std::int32_t* number;  // null: the numbers themselves
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
constexpr std::int32_t kWords = 8192;      // of a CTA's bitmap

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

// A CTA marks the numbers in a bitmap, part by part of all `numbers` that there may be, and reads
// them from there. Returns how many are written.
using Scan = cub::BlockScan<std::int32_t, kThreads>;
inline __device__ std::int32_t unite_by_cta(const Parts& parts, std::int64_t numbers,
                                            unsigned* bitmap, Scan::TempStorage& scan,
                                            std::int32_t* out) {
  constexpr std::int64_t kBits = std::int64_t{kWords} * 32;
  const int thread = threadIdx.x;
  std::int32_t written = 0;
  for (std::int64_t from = 0; from < numbers; from += kBits) {
    const auto words = static_cast<std::int32_t>((min(kBits, numbers - from) + 31) / 32);
    for (std::int32_t word = thread; word < words; word += kThreads) bitmap[word] = 0;
    __syncthreads();
    for (std::int32_t i = thread; i < parts.count; i += kThreads) {
      const std::int32_t number = parts[i];
      const std::int64_t bit = number - from;
      if (number < parts.end && bit >= 0 && bit < kBits)
        atomicOr(&bitmap[bit / 32], 1U << (bit % 32));
    }
    __syncthreads();
    for (std::int32_t first = 0; first < words; first += kThreads) {
      unsigned word = first + thread < words ? bitmap[first + thread] : 0;
      std::int32_t before = 0, of_all = 0;
      Scan(scan).ExclusiveSum(__popc(word), before, of_all);
      const std::int64_t number = from + std::int64_t{first + thread} * 32;
      for (std::int32_t to = written + before; word != 0; word &= word - 1)
        out[to++] = static_cast<std::int32_t>(number + __ffs(word) - 1);
      written += of_all;
      __syncthreads();
    }
  }
  return written;
}

// A warp for each item; the longer ones of its CTA afterwards by all its warps, one by one.
__global__ void __launch_bounds__(kThreads) unite(const __grid_constant__ Uniting all) {
  __shared__ union Memory {
    std::int32_t of_warps[kUniteWarps][2][kMostOfWarp];
    unsigned bitmap[kWords];
  } memory;
  __shared__ Scan::TempStorage scan;
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
    const std::int32_t length = unite_by_cta(parts, item < all.clusters ? all.cols : all.clusters,
                                             memory.bitmap, scan, array_of(item) + begin);
    if (threadIdx.x == 0) keep(item, begin, length);
  }
}

}  // namespace spmmbench::match
