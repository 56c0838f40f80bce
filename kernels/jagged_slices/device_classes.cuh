#pragma once
// The rows of A by class: how many there are of each, and where each begins (device_build.cu).

#include <cstdint>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

#include "jagged_slices/format.hpp"

namespace spmmbench::jagged {
namespace {

constexpr int kThreads = 512;
constexpr int kPerThread = 4;
constexpr int kTile = kThreads * kPerThread;  // rows
constexpr unsigned kAllLanes = 0xFFFFFFFFU;

constexpr int kClasses = 7;
constexpr int kClassBits = 3;  // of a class, or kClasses for none
constexpr int kTooLong = 0;
// Rows that share a slice of class `c`, which is none of too long ones.
constexpr int rows_of_slice(int c) { return 1 << (c - 1); }

using Count = unsigned long long;

struct Totals {
  Count rows[kClasses], entries[kClasses], parts;
};
constexpr int kFields = sizeof(Totals) / sizeof(Count);

// Where each class begins, and the end.
struct Classes {
  std::int64_t row[kClasses + 1], entry[kClasses + 1], slice[kClasses + 1], slot[kClasses + 1];
};

// The rows of A in the order in which slices take them.
struct Rows {
  const std::int64_t* row_ptr;
  const std::int32_t* order;  // null: natural
  std::int64_t count;
  JaggedShape shape;

  __device__ std::int32_t at(std::int64_t place) const {
    return order == nullptr ? static_cast<std::int32_t>(place) : order[place];
  }
  __device__ std::int32_t length(std::int32_t row) const {
    return static_cast<std::int32_t>(row_ptr[row + 1] - row_ptr[row]);
  }
  __device__ int class_of(std::int64_t length) const {
    if (shape.is_too_long(length)) return kTooLong;
    return 1 + shape.log2_places() - shape.log2_places_of(length);
  }
};

// From the counts of each tile, in place: those of the tiles before. By the threads of a CTA, with
// a warp for each field.
__device__ void sum_before(Totals* of_tile, std::int64_t tiles, Totals* all_tiles) {
  using Scan = cub::WarpScan<Count>;
  constexpr int kBatch = 8;  // tiles of a lane, read at a time
  __shared__ typename Scan::TempStorage temporary[kFields];
  const int field = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if (field >= kFields) return;
  const auto at = [&](std::int64_t tile) -> Count& {
    return reinterpret_cast<Count*>(of_tile + tile)[field];
  };
  Count before = 0;
  for (std::int64_t first = 0; first < tiles; first += 32 * kBatch) {
    const std::int64_t own = first + lane * kBatch;
    Count counts[kBatch], sum = 0, all = 0;
#pragma unroll
    for (int i = 0; i < kBatch; ++i) counts[i] = own + i < tiles ? at(own + i) : 0;
#pragma unroll
    for (int i = 0; i < kBatch; ++i) sum += counts[i];
    Scan(temporary[field]).ExclusiveSum(sum, sum, all);
    sum += before;
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (own + i < tiles) at(own + i) = sum;
      sum += counts[i];
    }
    before += all;
  }
  if (lane == 0) reinterpret_cast<Count*>(all_tiles)[field] = before;
}

__device__ Classes begin_classes(const Totals& all) {
  Classes first{};
#pragma unroll
  for (int c = 0; c < kClasses; ++c) {
    const auto rows = static_cast<std::int64_t>(all.rows[c]);
    const std::int64_t per_slice = c == kTooLong ? 1 : rows_of_slice(c);
    const std::int64_t slices = c == kTooLong
                                    ? static_cast<std::int64_t>(all.parts) * JaggedShape::kTeam
                                    : (rows + per_slice - 1) / per_slice;
    first.row[c + 1] = first.row[c] + rows;
    first.entry[c + 1] = first.entry[c] + static_cast<std::int64_t>(all.entries[c]);
    first.slice[c + 1] = first.slice[c] + slices;
    first.slot[c + 1] = first.slot[c] + slices * per_slice;
  }
  return first;
}

// Each warp counts in a place of its own: atomic additions of 64 bits to shared memory are loops,
// in which threads that add to one place wait for one another.
__global__ void __launch_bounds__(kThreads)
    count_rows(Rows in, Totals* of_tile, Classes* classes, Classes* told, unsigned* arrivals) {
  using Sum = cub::WarpReduce<Count>;
  constexpr int kWarps = kThreads / 32;
  __shared__ typename Sum::TempStorage temporary[kWarps];
  __shared__ Count of_warp[kWarps][kFields];
  __shared__ Totals all;
  __shared__ bool is_last;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if (lane < kFields) of_warp[warp][lane] = 0;
  __syncwarp();
  auto& totals = reinterpret_cast<Totals&>(of_warp[warp]);
  for (int i = 0; i < kPerThread; ++i) {
    const std::int64_t place = std::int64_t{blockIdx.x} * kTile + i * kThreads + threadIdx.x;
    const bool is_row = place < in.count;
    const std::int32_t length = is_row ? in.length(in.at(place)) : 0;
    const int own = is_row ? in.class_of(length) : kClasses;
    for (int c = 0; c < kClasses; ++c) {
      const unsigned lanes = __ballot_sync(kAllLanes, own == c);
      if (lanes == 0) continue;
      const auto sum_of = [&](std::int64_t value) {
        return Sum(temporary[warp]).Sum(own == c ? static_cast<Count>(value) : 0);
      };
      const Count entries = sum_of(length);
      const Count parts = c == kTooLong ? sum_of(in.shape.parts_of(length)) : 0;
      if (lane != 0) continue;
      totals.rows[c] += static_cast<Count>(__popc(lanes));
      totals.entries[c] += entries;
      totals.parts += parts;
    }
  }
  __syncthreads();
  if (threadIdx.x < kFields) {
    Count sum = 0;
    for (const auto& counts : of_warp) sum += counts[threadIdx.x];
    reinterpret_cast<Count*>(of_tile + blockIdx.x)[threadIdx.x] = sum;
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(arrivals, 1U) == gridDim.x - 1;
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  sum_before(of_tile, gridDim.x, &all);
  __syncthreads();
  if (threadIdx.x > 0) return;
  const Classes first = begin_classes(all);
  *classes = first;
  *told = first;
  *arrivals = 0;
}

}  // namespace
}  // namespace spmmbench::jagged
