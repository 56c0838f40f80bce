#pragma once
// The kernels that build groups of unit rows (async_bcsr/format.hpp) from the column blocks of
// each block row, which are bits here.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cub/block/block_scan.cuh>

#include "async_bcsr/format.hpp"
#include "common/device_arrays.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench::async_bcsr {

constexpr unsigned kAllLanes = 0xFFFFFFFFU;
constexpr int kThreads = 256, kWarpLanes = 32, kWordBits = 32;

__device__ inline int lane_of_warp() { return static_cast<int>(threadIdx.x) % kWarpLanes; }
__device__ inline std::int64_t warp_of_grid() {
  return (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) / kWarpLanes;
}
inline unsigned ctas_for(std::int64_t threads) {
  return static_cast<unsigned>(std::max<std::int64_t>(1, (threads + kThreads - 1) / kThreads));
}
// The blocks of A: a bit for each column block of each block row.
struct Pattern {
  std::int64_t rows, cols;
  int bm, bk;
  std::uint32_t* bits = nullptr;          // [block row][word]
  std::int32_t* rank = nullptr;           // [block row][word]: blocks of the row before the word
  std::int32_t* block_row_ptr = nullptr;  // block_rows() + 1

  __host__ __device__ std::int64_t block_rows() const { return (rows + bm - 1) / bm; }
  __host__ __device__ std::int64_t block_cols() const { return (cols + bk - 1) / bk; }
  __host__ __device__ std::int64_t words() const {
    return (block_cols() + kWordBits - 1) / kWordBits;
  }
  __host__ __device__ std::int64_t units() const {
    return (rows + BcsrGroups::kUnitRows - 1) / BcsrGroups::kUnitRows;
  }
  __device__ std::int64_t block_row(std::int32_t unit) const {
    return std::int64_t{unit} * BcsrGroups::kUnitRows / bm;
  }
  // Bits of a unit row, which may be -1, none.
  __device__ std::uint32_t word(std::int32_t unit, std::int64_t word) const {
    return unit < 0 ? 0 : bits[block_row(unit) * words() + word];
  }
  // Which of all blocks this one is.
  __device__ std::int64_t block_at(std::int64_t block_row, std::int32_t column) const {
    const std::int64_t at = block_row * words() + column / kWordBits;
    const std::uint32_t below = (1U << column % kWordBits) - 1;
    return block_row_ptr[block_row] + rank[at] + __popc(bits[at] & below);
  }
  __device__ std::int32_t length(std::int32_t unit) const {
    if (unit < 0) return 0;
    return block_row_ptr[block_row(unit) + 1] - block_row_ptr[block_row(unit)];
  }
  // Steps of a column block.
  __device__ int steps_of(std::int64_t column, int unit_k) const {
    return static_cast<int>((min(std::int64_t{bk}, cols - column * bk) + unit_k - 1) / unit_k);
  }
};

__global__ void measure_units(Pattern a, std::int32_t* numbers, std::int32_t* lengths) {
  const std::int64_t unit = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (unit >= a.units()) return;
  numbers[unit] = static_cast<std::int32_t>(unit);
  lengths[unit] = a.length(static_cast<std::int32_t>(unit));
}

// Columns that unit row order[i] has in common with each of the `width` after it.
__global__ void __launch_bounds__(kThreads)
    compare_units(Pattern a, const std::int32_t* order, std::int64_t width, std::int32_t* common) {
  const std::int64_t pair = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t i = pair / width, j = i + 1 + pair % width;
  if (j >= a.units()) return;
  const std::int32_t unit = order[i], other = order[j];
  std::int32_t columns = 0;
  for (std::int64_t word = 0; word < a.words(); ++word)
    columns += __popc(a.word(unit, word) & a.word(other, word));
  common[pair] = columns;
}

constexpr int kPairThreads = 1024;

// One CTA. Each unit row in turn takes the first of those after it with which it has most columns
// in common. `taken` is zero.
__global__ void __launch_bounds__(kPairThreads)
    take_pairs(const std::int32_t* order, std::int64_t units, std::int64_t width,
               const std::int32_t* common, unsigned char* taken, std::int32_t* members,
               std::int32_t* groups) {
  using Key = unsigned long long;  // columns in common, and for the first of equals the greatest
  __shared__ Key of_warp[kPairThreads / kWarpLanes];
  std::int32_t group = 0;
  for (std::int64_t i = 0; i < units; ++i) {
    if (taken[i] != 0) continue;
    Key own = 0;
    for (std::int64_t at = threadIdx.x; at < width && i + 1 + at < units; at += blockDim.x)
      if (taken[i + 1 + at] == 0)
        own = max(own, static_cast<Key>(common[i * width + at]) << 32 |
                           (~0U - static_cast<unsigned>(at)));
    for (int lanes = kWarpLanes / 2; lanes > 0; lanes /= 2)
      own = max(own, __shfl_xor_sync(kAllLanes, own, lanes));
    if (lane_of_warp() == 0) of_warp[threadIdx.x / kWarpLanes] = own;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (unsigned warp = 1; warp < blockDim.x / kWarpLanes; ++warp) own = max(own, of_warp[warp]);
      const std::int64_t partner = i + 1 + (~0U - static_cast<unsigned>(own));
      if (own != 0) taken[partner] = 1;
      members[2 * group] = order[i];
      members[2 * group + 1] = own == 0 ? -1 : order[partner];
    }
    ++group;
    __syncthreads();
  }
  if (threadIdx.x == 0) *groups = group;
}

__global__ void pair_neighbours(std::int64_t units, std::int32_t* members, std::int32_t* groups) {
  const std::int64_t unit = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (unit >= units) return;
  members[unit] = static_cast<std::int32_t>(unit);
  if (unit != units - 1) return;
  if (units % 2 != 0) members[units] = -1;
  *groups = static_cast<std::int32_t>((units + 1) / 2);
}

// Steps and blocks of each group, a warp each; no steps behind the last group.
__global__ void __launch_bounds__(kThreads)
    count_steps(Pattern a, int unit_k, const std::int32_t* members, const std::int32_t* groups,
                std::int32_t* numbers, std::int32_t* steps, std::int32_t* blocks) {
  const std::int64_t group = warp_of_grid();
  if (group >= a.units()) return;
  std::int32_t all = 0, of_blocks = 0;
  if (group < *groups) {
    const std::int32_t first = members[2 * group], second = members[2 * group + 1];
    int columns = 0;
    for (std::int64_t word = lane_of_warp(); word < a.words(); word += kWarpLanes)
      columns += __popc(a.word(first, word) | a.word(second, word));
    columns = __reduce_add_sync(kAllLanes, columns);
    const int each = a.bk / unit_k;
    all = columns * each;
    of_blocks = (a.length(first) + a.length(second)) * each;
    if (columns > 0) {  // the last column block may have fewer
      const std::int64_t last = a.block_cols() - 1;
      const int fewer = each - a.steps_of(last, unit_k);
      const int shift = static_cast<int>(last % kWordBits);
      const std::uint32_t has_first = a.word(first, last / kWordBits) >> shift & 1U;
      const std::uint32_t has_second = a.word(second, last / kWordBits) >> shift & 1U;
      all -= fewer * static_cast<int>(has_first | has_second);
      of_blocks -= fewer * static_cast<int>(has_first + has_second);
    }
    all = max(all, 1);
  }
  if (lane_of_warp() != 0) return;
  numbers[group] = static_cast<std::int32_t>(group);
  steps[group] = all;
  blocks[group] = of_blocks;
}

// Groups in their order, as they come to the host.
struct SortedGroups {
  std::int32_t* count;
  std::int32_t* step_ptr;  // behind the last group too, the number of all steps
  std::int32_t* members;
  std::int32_t* blocks;
};

constexpr int kSumThreads = 1024;

// One CTA.
__global__ void __launch_bounds__(kSumThreads)
    arrange_groups(const std::int32_t* order, const std::int32_t* steps, std::int64_t units,
                   const std::int32_t* members, const std::int32_t* blocks,
                   const std::int32_t* groups, SortedGroups out) {
  using Scan = cub::BlockScan<std::int32_t, kSumThreads>;
  __shared__ typename Scan::TempStorage temporary;
  const std::int32_t count = *groups;
  if (threadIdx.x == 0) *out.count = count;
  std::int32_t before = 0;
  for (std::int64_t first = 0; first <= units; first += kSumThreads) {
    const std::int64_t own = first + threadIdx.x;
    std::int32_t earlier = own < units ? steps[own] : 0, of_these = 0;
    Scan(temporary).ExclusiveSum(earlier, earlier, of_these);
    if (own <= units) out.step_ptr[own] = before + earlier;
    if (own < count) {
      const std::int32_t group = order[own];
      out.members[2 * own] = members[2 * group];
      out.members[2 * own + 1] = members[2 * group + 1];
      out.blocks[own] = blocks[group];
    }
    before += of_these;
    __syncthreads();  // the scan's memory is used again
  }
}

// The steps of each group, a warp each: a lane looks at a column block of a word. Those in reverse
// order lie behind the `all` steps.
__global__ void __launch_bounds__(kThreads)
    write_steps(Pattern a, int unit_k, const std::int32_t* members, const std::int32_t* step_ptr,
                std::int64_t groups, std::int64_t all, BcsrStep* steps) {
  const std::int64_t group = warp_of_grid();
  if (group >= groups) return;
  const auto put = [&](std::int64_t at, const BcsrStep& step) {
    steps[at] = step;
    steps[2 * all - 1 - at] = step;
  };
  const std::int32_t units[BcsrStep::kHeight] = {members[2 * group], members[2 * group + 1]};
  const int lane = lane_of_warp(), each = a.bk / unit_k;
  std::int64_t at = step_ptr[group];
  if (a.length(units[0]) + a.length(units[1]) == 0 && lane == 0) put(at, BcsrStep{});
  for (std::int64_t word = 0; word < a.words(); ++word) {
    const std::uint32_t bits[BcsrStep::kHeight] = {a.word(units[0], word), a.word(units[1], word)};
    const std::uint32_t any = bits[0] | bits[1];
    if ((any >> lane & 1U) != 0) {
      const auto column = static_cast<std::int32_t>(word * kWordBits + lane);
      BcsrStep step;
      for (int r = 0; r < BcsrStep::kHeight; ++r)
        if ((bits[r] >> lane & 1U) != 0)
          step.a_row[r] =
              static_cast<std::int32_t>(a.block_at(a.block_row(units[r]), column) * a.bm +
                                        std::int64_t{units[r]} * BcsrGroups::kUnitRows % a.bm);
      const std::int64_t to = at + __popc(any & ((1U << lane) - 1)) * each;
      for (int i = 0; i < a.steps_of(column, unit_k); ++i) {
        step.k = column * a.bk + i * unit_k;
        step.a_column = i * unit_k;
        put(to + i, step);
      }
    }
    at += __popc(any) * each;
  }
}

}  // namespace spmmbench::async_bcsr
