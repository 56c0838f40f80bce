#pragma once
// Device code of transpose_csr.cu: A^T in one launch. Of few entries the host would take longer for
// the launches of a sort than the device for the sort.
//
// Entries are sorted by column, stably, by a digit in each pass, the lowest first. Each CTA has a
// part of them. In a pass it counts the digits of its part, and waits for all others. Its entries
// of a digit go behind those of lower digits and those of earlier CTAs; it moves them in their
// order, a tile at a time. The first pass reads A, the last one writes A^T.

#include <cooperative_groups.h>

#include <cstdint>
#include <cub/block/block_scan.cuh>

#include "gpu/row_of_entry.cuh"
#include "spmmbench/device_csr.hpp"

namespace spmmbench::transposing {

constexpr int kThreads = 512, kWarps = kThreads / 32;
constexpr int kCtasPerSm = 2;
constexpr int kDigitBits = 8, kDigits = 1 << kDigitBits;
// Of a thread in a tile. With few, small matrices have work for more CTAs.
constexpr int kItems = 4;
constexpr int kTile = kThreads * kItems;
constexpr unsigned kWarp = 0xFFFFFFFFU;

// What one pass leaves to the next: the column of each entry, and its row above its number in A.
struct Sorted {
  std::int32_t* columns;
  std::uint64_t* numbers;
};

struct Sorting {
  DeviceCsr a;
  const std::int32_t* source_of_a;  // null: each entry is its own
  int passes;
  Sorted of_pass[2];     // in turn
  std::int32_t* counts;  // [CTA][digit]
};

template <class Bits>
struct Transposed {
  std::int64_t* row_ptr;
  std::int32_t* col_idx;
  Bits* values;
  std::int32_t* source;
};

inline __device__ int digit_of(std::int32_t column, int shift) {
  return column >> shift & (kDigits - 1);
}

// How many entries of [begin, end) have each digit.
inline __device__ void count_digits(const std::int32_t* columns, int begin, int end, int shift,
                                    int (&found)[kDigits], std::int32_t* counts) {
  for (int i = threadIdx.x; i < kDigits; i += kThreads) found[i] = 0;
  __syncthreads();
  for (int i = begin + threadIdx.x; i < end; i += kThreads)
    atomicAdd(&found[digit_of(columns[i], shift)], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < kDigits; i += kThreads) counts[blockIdx.x * kDigits + i] = found[i];
}

// Where the first entry of each digit goes that this CTA has.
inline __device__ void find_places(const std::int32_t* counts, int (&places)[kDigits]) {
  using Scan = cub::BlockScan<int, kThreads>;
  __shared__ typename Scan::TempStorage storage;
  const int digit = threadIdx.x;
  int earlier = 0, all = 0, lower = 0;
  if (digit < kDigits)
    for (unsigned cta = 0; cta < gridDim.x; ++cta) {
      const int count = counts[cta * kDigits + digit];
      if (cta < blockIdx.x) earlier += count;
      all += count;
    }
  Scan(storage).ExclusiveSum(all, lower);
  if (digit < kDigits) places[digit] = lower + earlier;
  __syncthreads();
}

// Moves the entries of a tile, which begins at `begin`, by `move(entry, column, place)`. Afterwards
// `places` are those of the next tile.
template <class Move>
__device__ void move_tile(const std::int32_t* columns, int begin, int end, int shift,
                          int (&places)[kDigits], int (&of_warps)[kWarps][kDigits],
                          const Move& move) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = threadIdx.x; i < kWarps * kDigits; i += kThreads) of_warps[0][i] = 0;
  __syncthreads();
  const int first = begin + warp * 32 * kItems + lane;
  std::int32_t column[kItems];
  int rank[kItems];  // among the entries of this digit that the warp has
#pragma unroll
  for (int k = 0; k < kItems; ++k) column[k] = first + 32 * k < end ? columns[first + 32 * k] : 0;
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const bool is_there = first + 32 * k < end;
    const unsigned all = __ballot_sync(kWarp, is_there);
    if (is_there) {
      int& count = of_warps[warp][digit_of(column[k], shift)];
      const unsigned same = __match_any_sync(all, digit_of(column[k], shift));
      const int before = count;
      __syncwarp(all);
      if (lane == __ffs(same) - 1) count = before + __popc(same);
      rank[k] = before + __popc(same & ((1U << lane) - 1));
    }
    __syncwarp();
  }
  __syncthreads();
  if (threadIdx.x < kDigits) {
    int place = places[threadIdx.x];
    for (int i = 0; i < kWarps; ++i) {
      const int count = of_warps[i][threadIdx.x];
      of_warps[i][threadIdx.x] = place;
      place += count;
    }
    places[threadIdx.x] = place;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kItems; ++k)
    if (first + 32 * k < end)
      move(first + 32 * k, column[k], of_warps[warp][digit_of(column[k], shift)] + rank[k]);
  __syncthreads();
}

// How many of the sorted columns are below `column`.
inline __device__ int count_below(const std::int32_t* sorted, int count, std::int64_t column) {
  int low = 0, high = count;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (sorted[middle] < column) low = middle + 1;
    else high = middle;
  }
  return high;
}

// A cooperative launch: the CTAs wait for each other.
template <class Bits>
__global__ void __launch_bounds__(kThreads, kCtasPerSm)
    transpose_at_once(const __grid_constant__ Sorting all,
                      const __grid_constant__ Transposed<Bits> out) {
  __shared__ int of_warps[kWarps][kDigits];
  __shared__ int places[kDigits];
  const auto grid = cooperative_groups::this_grid();
  const DeviceCsr& a = all.a;
  const int count = static_cast<int>(a.nnz), ctas = static_cast<int>(gridDim.x);
  const int part = (count + ctas - 1) / ctas;
  const int begin = min(count, static_cast<int>(blockIdx.x) * part), end = min(count, begin + part);
  const std::int32_t* columns = a.col_idx;
  for (int pass = 0; pass < all.passes; ++pass) {
    const int shift = pass * kDigitBits;
    const bool is_last = pass + 1 == all.passes;
    const std::uint64_t* const numbers = all.of_pass[(pass + 1) % 2].numbers;
    const Sorted to = all.of_pass[pass % 2];
    count_digits(columns, begin, end, shift, of_warps[0], all.counts);
    grid.sync();
    find_places(all.counts, places);
    const auto move = [&](int entry, std::int32_t column, int place) {
      const std::uint64_t number =
          pass > 0
              ? numbers[entry]
              : std::uint64_t{static_cast<std::uint32_t>(row_of_entry(a.row_ptr, a.rows, entry))}
                        << 32 |
                    static_cast<std::uint32_t>(entry);
      to.columns[place] = column;
      if (!is_last) {
        to.numbers[place] = number;
        return;
      }
      const auto of_a = static_cast<std::uint32_t>(number);
      out.col_idx[place] = static_cast<std::int32_t>(number >> 32);
      out.values[place] = static_cast<const Bits*>(a.values)[of_a];
      out.source[place] =
          all.source_of_a == nullptr ? static_cast<std::int32_t>(of_a) : all.source_of_a[of_a];
    };
    for (int tile = begin; tile < end; tile += kTile)
      move_tile(columns, tile, min(end, tile + kTile), shift, places, of_warps, move);
    grid.sync();
    columns = to.columns;
  }
  for (std::int64_t i = grid.thread_rank(); i <= a.cols; i += grid.num_threads())
    out.row_ptr[i] = count_below(columns, count, i);
}

}  // namespace spmmbench::transposing
