#pragma once
// What one CTA counts of a matrix on the device, for estimates of its features.

#include <cstddef>
#include <cstdint>
#include <limits>

#include "select/used_columns.hpp"
#include "spmmbench/device_csr.hpp"
#include "window/group_windows.cuh"

namespace spmmbench::device_counts {

using window::kGroupRows, window::kWindowsOfGroup;

constexpr int kRowThreads = 1024;  // of CTAs that count rows and windows
constexpr std::int64_t kBandRows = 128, kBlockColumns = 64;

struct BandCount {
  std::int64_t blocks, nnz;
};

struct Group {
  std::int32_t distinct[kWindowsOfGroup], nnz;  // distinct columns of each window
};

// Of a group of more entries only a range of columns is counted: neighbouring ones of a long row
// are marked in the same word, one after another.
constexpr std::int64_t kMostOfGroup = 1 << 12;

// The columns in which a group is counted: all, or in the middle as many as hold about kMostOfGroup
// of its entries. By all threads of a CTA.
struct ColumnRange {
  std::int64_t first = 0, end = 0;
  bool is_all = true;
};
__device__ inline ColumnRange counted_columns(const DeviceCsr& a, std::int64_t group) {
  __shared__ std::int32_t first, last;
  const std::int64_t row = group * kGroupRows + threadIdx.x;
  const std::int64_t end_row = min((group + 1) * kGroupRows, a.rows);
  const std::int64_t entries = a.row_ptr[end_row] - a.row_ptr[group * kGroupRows];
  const std::int64_t parts = (entries + kMostOfGroup - 1) / kMostOfGroup;
  if (parts <= 1) return {};
  if (threadIdx.x == 0) {
    first = std::numeric_limits<std::int32_t>::max();
    last = -1;
  }
  __syncthreads();
  if (threadIdx.x < kGroupRows && row < end_row && a.row_ptr[row] < a.row_ptr[row + 1]) {
    atomicMin(&first, a.col_idx[a.row_ptr[row]]);
    atomicMax(&last, a.col_idx[a.row_ptr[row + 1] - 1]);
  }
  __syncthreads();
  const std::int64_t width = (last - first) / parts + 1;
  return {first + parts / 2 * width, first + (parts / 2 + 1) * width, false};
}

// Window `part` of the group of a row. By all threads of a CTA.
__device__ inline void count_window(const DeviceCsr& a, std::int64_t row, int part, Group& out) {
  const std::int64_t group = row / kGroupRows;
  const ColumnRange range = counted_columns(a, group);
  const auto take = [&](const wcsr::Csr& csr, wcsr::Window& window) {
    if (!range.is_all) wcsr::take_columns<kRowThreads>(csr, range.first, range.end, window);
    return true;
  };
  const window::WindowCount count =
      window::count_window<kRowThreads>(a, nullptr, group, part, take);
  if (threadIdx.x != 0) return;
  out.distinct[part] = count.distinct;
  if (part == kWindowsOfGroup - 1) out.nnz = count.entries;
}

// Of the rows that CTA `cta` of `ctas` has.
__device__ inline std::int64_t longest_of_cta(const DeviceCsr& a, int cta, int ctas) {
  __shared__ int most;
  if (threadIdx.x == 0) most = 0;
  __syncthreads();
  int own = 0;
  for (std::int64_t row = std::int64_t{cta} * blockDim.x + threadIdx.x; row < a.rows;
       row += std::int64_t{ctas} * blockDim.x)
    own = max(own, static_cast<int>(a.row_ptr[row + 1] - a.row_ptr[row]));
  own = __reduce_max_sync(0xFFFFFFFF, own);
  if (threadIdx.x % 32 == 0) atomicMax(&most, own);
  __syncthreads();
  return most;
}

// Blocks with a nonzero in the band of a row, marked in shared memory. In a band with many nonzeros
// one of every `step` is looked at, which misses blocks that are far too empty to be multiplied.
template <int kCtaThreads>
__device__ BandCount count_blocks(const DeviceCsr& a, std::int64_t row, int words) {
  // Nonzeros that are looked at, at most: of a band, and for each of its blocks
  // (docs/decisions/few-calls.md).
  constexpr std::int64_t kMostOfBand = 1 << 14, kOfBlock = 8;
  constexpr std::uint32_t kGolden = 0x9E3779B9;  // 2^32 / golden ratio
  extern __shared__ unsigned seen[];
  __shared__ int blocks;
  const std::int64_t first = row / kBandRows * kBandRows;
  const std::int64_t begin = a.row_ptr[first], end = a.row_ptr[min(first + kBandRows, a.rows)];
  for (int word = static_cast<int>(threadIdx.x); word < words; word += kCtaThreads) seen[word] = 0;
  if (threadIdx.x == 0) blocks = 0;
  __syncthreads();
  // Of a narrow band, fewer meet every block that is not nearly empty.
  const std::int64_t of_blocks = (a.cols / kBlockColumns + 1) * kOfBlock;
  const std::int64_t most = max(std::int64_t{kCtaThreads}, min(kMostOfBand, of_blocks));
  const std::int64_t step = (end - begin + most - 1) / most;
  const std::int64_t count = step == 0 ? 0 : (end - begin) / step;
#pragma unroll 4
  for (std::int64_t first_i = 0; first_i < count; first_i += kCtaThreads) {
    const std::int64_t i = first_i + threadIdx.x;
    // Its place among `step` varies, so that it cannot keep in step with the lengths of the rows.
    const std::uint64_t varied = static_cast<std::uint32_t>(i) * kGolden;
    const auto place = static_cast<std::int64_t>(varied * static_cast<std::uint64_t>(step) >> 32);
    const int block =
        i < count ? static_cast<int>(a.col_idx[begin + i * step + place] / kBlockColumns) : -1;
    // Neighbouring entries mostly lie in one block, and atomics on one word come one after another.
    const int before = __shfl_up_sync(wcsr::kAllLanes, block, 1);
    const bool again = threadIdx.x % 32 > 0 && block == before;
    if (block >= 0 && !again) atomicOr(seen + block / 32, 1U << block % 32);
  }
  __syncthreads();
  int own = 0;
  for (int word = static_cast<int>(threadIdx.x); word < words; word += kCtaThreads)
    own += __popc(seen[word]);
  atomicAdd(&blocks, own);
  __syncthreads();
  return {blocks, end - begin};
}

constexpr int kWordsOfColumns = 2 * used_columns::kMarkWords;  // of shared memory

// Columns of the sampled rows (select/used_columns.hpp). By all threads of a CTA.
template <int kCtaThreads>
__device__ used_columns::Seen count_columns(const DeviceCsr& a, const std::int64_t* rows) {
  constexpr int kMostOfRow = static_cast<int>(used_columns::kMostOfRow);
  constexpr int kAtOnce = kCtaThreads / kMostOfRow;  // rows
  extern __shared__ unsigned seen[];
  unsigned* const again = seen + used_columns::kMarkWords;
  __shared__ int entries, columns, once;
  for (int word = static_cast<int>(threadIdx.x); word < kWordsOfColumns; word += kCtaThreads)
    seen[word] = 0;
  if (threadIdx.x == 0) entries = columns = once = 0;
  __syncthreads();
  int looked = 0;
  for (int sample = static_cast<int>(threadIdx.x) / kMostOfRow; sample < kSampledRows;
       sample += kAtOnce) {
    const std::int64_t row = rows[sample];
    if (sample > 0 && rows[sample - 1] == row) continue;
    const auto range = used_columns::looked_at(a.row_ptr[row], a.row_ptr[row + 1], sample);
    const std::int64_t e = range.first + threadIdx.x % kMostOfRow;
    if (e >= range.end) continue;
    const unsigned mark = used_columns::mark_of(a.col_idx[e]), bit = 1U << mark % 32;
    if ((atomicOr(seen + mark / 32, bit) & bit) != 0) atomicOr(again + mark / 32, bit);
    ++looked;
  }
  atomicAdd(&entries, looked);
  __syncthreads();
  int distinct = 0, single = 0;
  for (int word = static_cast<int>(threadIdx.x); word < used_columns::kMarkWords;
       word += kCtaThreads) {
    distinct += __popc(seen[word]);
    single += __popc(seen[word] & ~again[word]);
  }
  atomicAdd(&columns, distinct);
  atomicAdd(&once, single);
  __syncthreads();
  return {entries, columns, once};
}

// Whether the bits of a floating-point number are those of 0 or -0.
__device__ inline bool is_zero(const void* values, std::size_t bytes, std::int64_t e) {
  switch (bytes) {
    case 1: return (static_cast<const std::uint8_t*>(values)[e] & 0x7FU) == 0;
    case 2: return (static_cast<const std::uint16_t*>(values)[e] & 0x7FFFU) == 0;
    case 4: return (static_cast<const std::uint32_t*>(values)[e] & 0x7FFFFFFFU) == 0;
    default: return (static_cast<const std::uint64_t*>(values)[e] << 1) == 0;
  }
}

// Of the first entries of a row: the most nonzeros in four neighbouring columns.
__device__ inline int most_of_four(const DeviceCsr& a, std::size_t value_bytes, std::int64_t row) {
  constexpr int kMostEntries = 64;
  __shared__ int most;
  if (threadIdx.x == 0) most = 0;
  __syncthreads();
  const std::int64_t first = a.row_ptr[row], end = min(a.row_ptr[row + 1], first + kMostEntries);
  const std::int64_t own = first + threadIdx.x;
  int nonzeros = 0;
  for (std::int64_t e = own; e < end && a.col_idx[e] / 4 == a.col_idx[own] / 4; ++e)
    nonzeros += is_zero(a.values, value_bytes, e) ? 0 : 1;
  atomicMax(&most, nonzeros);
  __syncthreads();
  return most;
}

}  // namespace spmmbench::device_counts
