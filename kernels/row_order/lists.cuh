#pragma once
// The lists of the first level become ascending: step 1 of match_order.cu.

#include <climits>
#include <cstdint>
#include <cub/block/block_radix_sort.cuh>

#include "ptx/griddepcontrol.cuh"
#include "reorder/match.hpp"
#include "row_order/level.cuh"

namespace spmmbench::match {

struct Lists {
  const Span* list_of;  // [columns of A]
  std::int32_t* lists;
  std::int64_t cols;  // of A
  std::int32_t rows;
};

// A warp sorts this many numbers, all different, by counting for each those before it. `values` has
// room for 32 kOfLane.
template <int kOfLane>
inline __device__ void sort_by_warp(std::int32_t* list, std::int32_t length, int4* values) {
  const int lane = threadIdx.x % 32;
  std::int32_t own[kOfLane], place[kOfLane] = {};
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) {
    const std::int32_t at = i * 32 + lane;
    own[i] = at < length ? list[at] : INT_MAX;
    reinterpret_cast<std::int32_t*>(values)[at] = own[i];
  }
  __syncwarp();
  for (std::int32_t four = 0; 4 * four < length; ++four) {
    const int4 others = values[four];
#pragma unroll
    for (int i = 0; i < kOfLane; ++i)
      place[i] += (others.x < own[i] ? 1 : 0) + (others.y < own[i] ? 1 : 0) +
                  (others.z < own[i] ? 1 : 0) + (others.w < own[i] ? 1 : 0);
  }
#pragma unroll
  for (int i = 0; i < kOfLane; ++i)
    if (i * 32 + lane < length) list[place[i]] = own[i];
  __syncwarp();
}

constexpr int kSortOfThread = 4;  // numbers that a thread of a CTA sorts
static_assert(kMostOfColumn <= kThreads * kSortOfThread, "a CTA sorts a list");
using Sort = cub::BlockRadixSort<unsigned, kThreads, kSortOfThread>;

inline __device__ void sort_by_cta(std::int32_t* list, std::int32_t length, std::int32_t rows,
                                   Sort::TempStorage& memory) {
  unsigned numbers[kSortOfThread];
#pragma unroll
  for (int i = 0; i < kSortOfThread; ++i) {
    const std::int32_t at = i * kThreads + static_cast<int>(threadIdx.x);
    numbers[i] = static_cast<unsigned>(at < length ? list[at] : rows);
  }
  Sort(memory).Sort(numbers, 0, 32 - __clz(rows));
#pragma unroll
  for (int i = 0; i < kSortOfThread; ++i) {
    const std::int32_t at = static_cast<int>(threadIdx.x) * kSortOfThread + i;
    if (at < length) list[at] = static_cast<std::int32_t>(numbers[i]);
  }
  __syncthreads();
}

// Lists that are read to their end need no order. A warp for kListsOfWarp of the others, one after
// another; the longer ones of its CTA afterwards by all its warps, one by one.
constexpr int kListsOfWarp = 2, kListsOfCta = kThreads / 32 * kListsOfWarp;
__global__ void __launch_bounds__(kThreads) sort_lists(const __grid_constant__ Lists all) {
  constexpr std::int32_t kMostOfSort = 256;  // numbers that a warp sorts
  __shared__ union Memory {
    int4 of_warps[kThreads / 32][kMostOfSort / 4];
    Sort::TempStorage of_cta;
  } memory;
  __shared__ Span spans[kListsOfCta];
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const int warp = threadIdx.x / 32;
  if (threadIdx.x < kListsOfCta) {
    // Neighbours, which are often long alike, are in different CTAs.
    const std::int64_t column = blockIdx.x + std::int64_t{threadIdx.x} * gridDim.x;
    spans[threadIdx.x] = column < all.cols ? all.list_of[column] : Span{0, 0};
  }
  __syncthreads();
  for (int i = warp * kListsOfWarp; i < (warp + 1) * kListsOfWarp; ++i) {
    const Span span = spans[i];
    std::int32_t* const list = all.lists + span.begin;
    int4* const values = memory.of_warps[warp];
    if (span.length <= kFewPlaces || span.length > kMostOfSort) continue;
    if (span.length <= 32) sort_by_warp<1>(list, span.length, values);
    else if (span.length <= 64) sort_by_warp<2>(list, span.length, values);
    else if (span.length <= 128) sort_by_warp<4>(list, span.length, values);
    else sort_by_warp<kMostOfSort / 32>(list, span.length, values);
  }
  __syncthreads();
  for (const Span span : spans)
    if (span.length > kMostOfSort)
      sort_by_cta(all.lists + span.begin, span.length, all.rows, memory.of_cta);
}

}  // namespace spmmbench::match
