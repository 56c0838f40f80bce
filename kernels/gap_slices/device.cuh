#pragma once
// The device side of gap_slices.
//
//   block: 32 warps, some slices of A; B in shared memory, 2 bytes an element
//     warp: its groups, one after the other, from memory into registers, two ahead
//       lane, per group: 8 values and 8 gaps -> 8 elements of B (8 dot products of bytes) -> a sum
//       where a slice ends: sums of a row's lanes are added and put into shared memory
//     then: the sums that warps have of a row are added in their order and stored

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#include "format/gap_slices.hpp"
#include "gpu/element.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/ld_global.cuh"

namespace spmmbench::gap_slices {

inline constexpr int kWarps = 32;
inline constexpr int kThreads = 32 * kWarps;
inline constexpr int kAhead = 2;           // groups of a warp on their way
inline constexpr int kVectorElements = 8;  // of B that a thread copies at a time
inline constexpr int kElementBytes = 2;    // of B

struct Arguments {
  const std::uint32_t* words;
  const std::int32_t* slice_ptr;
  const std::int32_t* block_ptr;
  const GapSlices::Warps* slice_warps;
  const GapSlices::Range* ranges;  // [block][warp]
  const std::int32_t* starts;      // [block][warp][lane]
  const std::int32_t* row_ids;     // [slice][row] of C; -1: none
  int cols, part_cols, row_lanes;
};

// B or C; element i is data[i * stride].
template <class T>
struct Vector {
  T* data;
  std::int64_t stride;
};

// Shared memory: B, then a sum for every row of every slice and of one more for each warp.
constexpr std::size_t vector_bytes(std::int64_t cols) {
  return static_cast<std::size_t>((cols + kVectorElements - 1) / kVectorElements) *
         kVectorElements * kElementBytes;
}
constexpr std::size_t shared_bytes(std::int64_t cols, std::int64_t slices, int slice_rows) {
  return vector_bytes(cols) +
         static_cast<std::size_t>((slices + kWarps) * slice_rows) * sizeof(float);
}

// What one lane has of a group.
template <int kGapBits>
struct Group {
  uint4 values;
  std::uint32_t first_gaps, last_gaps;  // of four entries each, in bytes

  __device__ void load(const std::uint32_t* group, int lane) {
    values = ptx::ld_global_nc_no_allocate_v4(group + lane * GapSlices::kValueWords);
    const std::uint32_t* const gaps = group + GapSlices::kLanes * GapSlices::kValueWords;
    if constexpr (kGapBits == 4) {
      first_gaps = ptx::ld_global_nc_no_allocate(gaps + lane);  // of all eight, see unpack
    } else {
      const uint2 both = ptx::ld_global_nc_no_allocate_v2(gaps + 2 * lane);
      first_gaps = both.x;
      last_gaps = both.y;
    }
  }
  // Apart from load, so that nothing waits for what was loaded.
  __device__ void unpack() {
    if constexpr (kGapBits == 4) {
      constexpr std::uint32_t kLowHalves = 0x0F0F0F0F;
      last_gaps = first_gaps >> 4 & kLowHalves;
      first_gaps &= kLowHalves;
    }
  }
};

// Adds value times element of B for the entries of a group. `at` is the address of the element of
// the entry before, in bytes after `b`, and moves on to that of the last entry.
template <class T, int kGapBits>
__device__ void add_group(Group<kGapBits> group, const char* b, std::uint32_t& at,
                          float (&sums)[2]) {
  group.unpack();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t gaps = half == 0 ? group.first_gaps : group.last_gaps;
    std::uint32_t address[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)  // the gaps of entries 0 to i
      address[i] = __dp4a(gaps, (0x01010101U >> (8 * (3 - i))) * kElementBytes, at);
    at = address[3];
    const std::uint32_t words[2] = {half == 0 ? group.values.x : group.values.z,
                                    half == 0 ? group.values.y : group.values.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto bits = static_cast<std::uint16_t>(words[i / 2] >> (16 * (i % 2)));
      T value;
      memcpy(&value, &bits, sizeof(value));
      sums[i % 2] += to_float(value) * to_float(*reinterpret_cast<const T*>(b + address[i]));
    }
  }
}

// B into shared memory, 16 bytes at a time where its elements lie side by side. Up to seven
// elements behind the last are copied too, which no entry of A names.
template <class T>
__device__ void copy_vector(Vector<const T> b, int cols, char* to) {
  if (b.stride == 1) {
    const auto* const from = reinterpret_cast<const uint4*>(b.data);
    for (int i = threadIdx.x; i * kVectorElements < cols; i += kThreads)
      reinterpret_cast<uint4*>(to)[i] = from[i];
  } else {
    for (int i = threadIdx.x; i < cols; i += kThreads)
      reinterpret_cast<T*>(to)[i] = b.data[i * b.stride];
  }
}

template <class T, class TC, int kGapBits>
__global__ void __launch_bounds__(kThreads, 1)
    multiply(Arguments in, Vector<const T> b, Vector<TC> c) {
  extern __shared__ __align__(16) char shared[];
  constexpr GapSlices::Shape kShape{.gap_bits = kGapBits};
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int slice_rows = GapSlices::kLanes / in.row_lanes;
  const std::int32_t first_slice = in.block_ptr[blockIdx.x];
  const std::int32_t slices = in.block_ptr[blockIdx.x + 1] - first_slice;
  const int range_index = blockIdx.x * kWarps + warp;
  const GapSlices::Range range = in.ranges[range_index];
  auto* const sums_of_rows = reinterpret_cast<float*>(shared + vector_bytes(in.cols));

  const std::uint32_t* next = in.words + range.first_group * kShape.group_words();
  int to_load = range.groups;
  Group<kGapBits> groups[kAhead];
  const auto load = [&](Group<kGapBits>& to) {
    if (to_load <= 0) return;
    to.load(next, lane);
    next += kShape.group_words();
    --to_load;
  };
#pragma unroll
  for (auto& group : groups) load(group);
  std::uint32_t at = kElementBytes * in.starts[range_index * GapSlices::kLanes + lane];
  const int part = lane % in.row_lanes;
  const std::uint32_t part_begin =  // GapSlices::first_column
      kElementBytes * min(part * in.part_cols, in.cols - 1);
  for (int i = threadIdx.x; i < (slices + kWarps) * slice_rows; i += kThreads) sums_of_rows[i] = 0;
  ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
  copy_vector(b, in.cols, shared);
  __syncthreads();

  float sums[2] = {};
  std::int32_t slice = range.first_slice;
  // A warp has at most one slice that it shares with the warp before, so no two write to one place.
  const auto end_slice = [&] {
    float sum = sums[0] + sums[1];
    for (int distance = 1; distance < in.row_lanes; distance *= 2)
      sum += __shfl_xor_sync(~0U, sum, distance);
    if (part == 0)
      sums_of_rows[(slice - first_slice + warp) * slice_rows + lane / in.row_lanes] = sum;
    sums[0] = sums[1] = 0;
    at = part_begin;
  };
  const std::int32_t end = range.first_group + range.groups;
  std::int32_t slice_end = range.groups > 0 ? in.slice_ptr[slice + 1] : 0;
  for (std::int32_t first = range.first_group; first < end; first += kAhead) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (first + i >= end) break;
      if (first + i == slice_end) {
        end_slice();
        slice_end = in.slice_ptr[++slice + 1];
      }
      const Group<kGapBits> group = groups[i];
      load(groups[i]);
      add_group<T>(group, shared, at, sums);
    }
  }
  if (range.groups > 0) end_slice();
  __syncthreads();

  for (int i = threadIdx.x; i < slices * slice_rows; i += kThreads) {
    const int of_block = i / slice_rows;
    const std::int32_t row = in.row_ids[first_slice * slice_rows + i];
    const GapSlices::Warps warps = in.slice_warps[first_slice + of_block];
    float sum = 0;
    for (int w = warps.first; w < warps.end; ++w)
      sum += sums_of_rows[(of_block + w) * slice_rows + i % slice_rows];
    if (row >= 0) c.data[row * c.stride] = from_float<TC>(sum);
  }
}

}  // namespace spmmbench::gap_slices
