#pragma once
// What windows of sampled rows gather in natural order and with their best partners: Sample in
// reorder/match.hpp.

#include <cstdint>

#include "ptx/griddepcontrol.cuh"
#include "reorder/match.hpp"
#include "row_order/level.cuh"
#include "row_order/partners.cuh"

namespace spmmbench::match {

// What follows from the sample.
struct SampleVerdict {
  unsigned* arrivals;   // of CTAs: 0, before and after
  std::int32_t* stops;  // whether no order is made
  std::int32_t* told;   // the same, for the host
};

// Rows in natural order.
struct NaturalRows {
  const std::int64_t* row_ptr;
  std::int64_t count;
  const std::int32_t* of_cluster;

  // By a warp: those of the window of a cluster, one for each of the first lanes.
  __device__ Span window_row(std::int32_t cluster) const {
    static_assert(kWindowReach == 32, "a lane for each row");
    const int lane = threadIdx.x % 32;
    const std::int64_t row = first_of_window(of_cluster[cluster]) + lane;
    const std::int64_t begin = row < count ? row_ptr[row] : 0;
    const auto length = row < count ? static_cast<std::int32_t>(row_ptr[row + 1] - begin) : 0;
    const unsigned filled = __ballot_sync(kWarp, length > 0);
    const bool is_row = lane < min(kWindowRows, __popc(filled));
    const int source = is_row ? static_cast<int>(__fns(filled, 0, lane + 1)) : 0;
    const Span span{__shfl_sync(kWarp, static_cast<std::int32_t>(begin), source),
                    __shfl_sync(kWarp, length, source)};
    return is_row ? span : Span{0, 0};
  }
};

// By one thread of the last CTA: whether an order gains, by the sums of all.
__device__ inline void judge(const Level& rows, const Partners& of_rows,
                             const SampleVerdict& verdict) {
  *verdict.arrivals = 0;
  const volatile unsigned long long* const sums = of_rows.sample;
  const Sample sample{sums[0], sums[1], sums[2], sums[3]};
  const std::int32_t stops = sample.gains(rows.clusters) ? 0 : 1;
  *verdict.stops = stops;
  *verdict.told = stops;
}

// The lane's row of one of the two windows of cluster `own`, whose partners are known.
__device__ inline Span row_in_window(const Level& rows, const Partners& of_rows,
                                     const NaturalRows& natural, std::int32_t own,
                                     bool is_natural) {
  const int lane = threadIdx.x % 32;
  Span span{0, 0};
  if (is_natural) {
    span = natural.window_row(own);
  } else if (lane == 0) {
    span = rows.columns_of[own];
  } else if (lane < kWindowRows) {
    const std::uint64_t rank = of_rows.suits.ranks[std::int64_t{blockIdx.x} * kNear + lane - 1];
    if (rank != 0) span = rows.columns_of[ranked_partner(own, rank)];
  }
  return span;
}

// A CTA for every step-th row, whose partners are known; half of it for each of two windows: that
// of the natural order, and the row with its best partners. The last one judges.
__global__ void __launch_bounds__(kThreads)
    gather_samples(const __grid_constant__ Level rows, const __grid_constant__ Partners of_rows,
                   const __grid_constant__ NaturalRows natural,
                   const __grid_constant__ SampleVerdict verdict) {
  static_assert(kWindowRows <= kNear + 1);
  ptx::griddepcontrol_wait();
  const int lane = threadIdx.x % 32;
  constexpr int kOfWindow = kThreads / 2;  // threads of a window
  __shared__ std::int32_t firsts_of[2];
  const std::int64_t sampled = std::int64_t{blockIdx.x} * of_rows.step;
  if (threadIdx.x < 2) firsts_of[threadIdx.x] = 0;
  __syncthreads();
  const auto own = static_cast<std::int32_t>(sampled);
  const int window = threadIdx.x / kOfWindow;
  const Span span = row_in_window(rows, of_rows, natural, own, window == 0);
  std::int64_t end = span.length;  // the entries up to the end of the lane's row
#pragma unroll
  for (int distance = 1; distance < kWindowRows; distance *= 2) {
    const std::int64_t before = __shfl_up_sync(kWarp, end, distance);
    if (lane >= distance) end += before;
  }
  const std::int64_t entries = __shfl_sync(kWarp, end, kWindowRows - 1);
  const std::int32_t tested = tested_of(entries);
  std::int32_t firsts = 0;
  const auto begin_of_warp = static_cast<std::int32_t>(threadIdx.x) % kOfWindow / 32 * 32;
  for (std::int32_t first = begin_of_warp; first < tested; first += kOfWindow) {
    const bool is_tested = first + lane < tested;
    const std::int64_t at = is_tested ? tested_entry(first + lane, entries) : 0;
    int place = 0;
#pragma unroll
    for (int i = 0; i < kWindowRows - 1; ++i) place += __shfl_sync(kWarp, end, i) <= at ? 1 : 0;
    const std::int32_t begin = __shfl_sync(kWarp, span.begin, place);
    const std::int64_t row_begin = __shfl_sync(kWarp, end - span.length, place);
    const std::int32_t column = rows.columns[begin + (at - row_begin)];
    bool is_first = is_tested;
    for (int i = 0; i < kWindowRows - 1; ++i) {
      const std::int32_t* const before = rows.columns + __shfl_sync(kWarp, span.begin, i);
      const std::int32_t length = __shfl_sync(kWarp, span.length, i);
      if (i >= place || !is_first) continue;
      const std::int32_t found = lower_bound(before, length, column);
      is_first = found == length || before[found] != column;
    }
    firsts += __popc(__ballot_sync(kWarp, is_first));
  }
  if (lane == 0) atomicAdd(firsts_of + window, firsts);
  __syncthreads();
  if (threadIdx.x % kOfWindow == 0)
    atomicAdd(of_rows.sample + 2 + window,
              gathered_by(firsts_of[window], entries, rows.length(own)));
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicAdd(verdict.arrivals, 1U) + 1 < gridDim.x) return;
  judge(rows, of_rows, verdict);
}

}  // namespace spmmbench::match
