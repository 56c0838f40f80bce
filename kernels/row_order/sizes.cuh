#pragma once
// The numbers of the rows that are filled, and where the list of each column begins: sums of Size.

#include <cstdint>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "ptx/griddepcontrol.cuh"
#include "row_order/level.cuh"

namespace spmmbench::match {

struct SizeSums {
  Size sizes;
  std::int64_t count;
  unsigned* sums;              // [count], of those before each
  unsigned long long* totals;  // of each CTA its sum, and kIsThere; 0 before

  static constexpr unsigned long long kIsThere = 1ULL << 32;
};

constexpr int kSizeThreads = 512, kSizesOfThread = 4, kSizesAtOnce = kSizeThreads * kSizesOfThread;

// Each CTA sums its part, waits for the totals of those of lower numbers, which the device starts
// first, and then writes its sums.
__global__ void __launch_bounds__(kSizeThreads) sum_sizes(const __grid_constant__ SizeSums all) {
  using Scan = cub::BlockScan<unsigned, kSizeThreads>;
  using Reduce = cub::BlockReduce<unsigned, kSizeThreads>;
  __shared__ union {
    typename Scan::TempStorage scan;
    typename Reduce::TempStorage reduce;
  } memory;
  __shared__ unsigned before_shared;
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const std::int64_t ctas = gridDim.x;
  const std::int64_t part =
      (all.count + ctas * kSizesAtOnce - 1) / (ctas * kSizesAtOnce) * kSizesAtOnce;
  const std::int64_t begin = blockIdx.x * part, end = min(begin + part, all.count);
  const auto read = [&](std::int64_t first, unsigned(&own)[kSizesOfThread]) {
    unsigned sum = 0;
#pragma unroll
    for (int i = 0; i < kSizesOfThread; ++i) {
      const std::int64_t at = first + threadIdx.x * kSizesOfThread + i;
      own[i] = at < end ? all.sizes(at) : 0;
      sum += own[i];
    }
    return sum;
  };
  unsigned own[kSizesOfThread], sum = 0;
  for (std::int64_t first = begin; first < end; first += kSizesAtOnce) sum += read(first, own);
  const unsigned total = Reduce(memory.reduce).Sum(sum);
  if (threadIdx.x == 0)
    *static_cast<volatile unsigned long long*>(all.totals + blockIdx.x) =
        SizeSums::kIsThere | total;
  __syncthreads();
  unsigned before_of_thread = 0;
  for (unsigned cta = threadIdx.x; cta < blockIdx.x; cta += kSizeThreads) {
    const auto* const at = static_cast<const volatile unsigned long long*>(all.totals + cta);
    unsigned long long there = *at;
    while (there == 0) there = *at;
    before_of_thread += static_cast<unsigned>(there);
  }
  const unsigned of_others = Reduce(memory.reduce).Sum(before_of_thread);
  if (threadIdx.x == 0) before_shared = of_others;
  __syncthreads();
  unsigned before = before_shared;
  for (std::int64_t first = begin; first < end; first += kSizesAtOnce) {
    if (part > kSizesAtOnce) sum = read(first, own);
    unsigned place = 0, of_these = 0;
    Scan(memory.scan).ExclusiveSum(sum, place, of_these);
    __syncthreads();
    place += before;
    before += of_these;
#pragma unroll
    for (int i = 0; i < kSizesOfThread; ++i) {
      const std::int64_t at = first + threadIdx.x * kSizesOfThread + i;
      if (at < end) all.sums[at] = place;
      place += own[i];
    }
  }
}

}  // namespace spmmbench::match
