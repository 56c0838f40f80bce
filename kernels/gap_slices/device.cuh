#pragma once
// The device side of gap_slices.
//
//   block: 32 warps, some slices of A; B in shared memory, 2 bytes an element, in fp8 as fp32
//     warp: its groups, one after the other, from memory into registers, two ahead
//       lane, per group: 8 values and 8 gaps -> 8 elements of B (8 dot products of bytes) -> a sum
//       where a slice ends: sums of a row's lanes are added and put into shared memory
//     then: the sums that warps have of a row are added in their order and stored

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "gap_slices/format.hpp"
#include "gpu/element.cuh"
#include "ptx/cvt.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/ld_global.cuh"

namespace spmmbench::gap_slices {

inline constexpr int kWarps = 32;
inline constexpr int kThreads = 32 * kWarps;
inline constexpr int kVectorElements = 8;  // of B that a thread copies at a time

template <class T>
inline constexpr bool kFp8 = std::is_same_v<T, __nv_fp8_e4m3>;
template <class T>
inline constexpr int kAhead = kFp8<T> ? 3 : 2;  // groups of a warp on their way
// An element of B in shared memory. Of fp8 it is fp32, so that nothing is converted for a nonzero.
template <class T>
using Held = std::conditional_t<kFp8<T>, float, T>;
constexpr int held_bytes(ElementType type) { return bytes_of(type) == 1 ? 4 : 2; }

struct Arguments {
  const std::uint32_t* words;
  const std::int32_t* slice_ptr;
  const std::int32_t* block_ptr;
  const GapSlices::Warps* slice_warps;
  const GapSlices::Range* ranges;  // [block][warp]
  const std::int32_t* starts;      // [block][warp][lane]
  const std::int32_t* row_ids;     // [slice][row] of C; -1: none
  int cols, part_cols, row_lanes;
  float scale;  // of A times that of B, in fp8
};

// B or C; element i is data[i * stride].
template <class T>
struct Vector {
  T* data;
  std::int64_t stride;
};

// Shared memory: B, then a sum for every row of every slice and of one more for each warp.
constexpr std::size_t vector_bytes(std::int64_t cols, int element_bytes) {
  return static_cast<std::size_t>((cols + kVectorElements - 1) / kVectorElements) *
         kVectorElements * element_bytes;
}
constexpr std::size_t shared_bytes(std::int64_t cols, int element_bytes, std::int64_t slices,
                                   int slice_rows) {
  return vector_bytes(cols, element_bytes) +
         static_cast<std::size_t>((slices + kWarps) * slice_rows) * sizeof(float);
}

// What one lane has of a group.
template <class T, int kGapBits>
struct Group {
  static constexpr GapSlices::Shape kShape{.gap_bits = kGapBits, .value_bits = 8 * sizeof(T)};
  std::conditional_t<kFp8<T>, uint2, uint4> values;
  std::uint32_t first_gaps, last_gaps;  // of four entries each, in bytes

  __device__ void load(const std::uint32_t* group, int lane) {
    const std::uint32_t* const own = group + lane * kShape.value_words();
    if constexpr (kFp8<T>) values = ptx::ld_global_nc_no_allocate_v2(own);
    else values = ptx::ld_global_nc_no_allocate_v4(own);
    const std::uint32_t* const gaps = group + GapSlices::kLanes * kShape.value_words();
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
  // The values of four entries, in 16 bits each.
  __device__ uint2 four(int half) const {
    if constexpr (kFp8<T>) return ptx::cvt_rn_f16x2_e4m3x2(half == 0 ? values.x : values.y);
    else return half == 0 ? make_uint2(values.x, values.y) : make_uint2(values.z, values.w);
  }
};

// Adds value times element of B for the entries of a group. `at` is the address of the element of
// the entry before, in bytes after `b`, and moves on to that of the last entry.
template <class T, int kGapBits>
__device__ void add_group(Group<T, kGapBits> group, const char* b, std::uint32_t& at,
                          float (&sums)[2]) {
  using Factor = std::conditional_t<kFp8<T>, __half, T>;
  group.unpack();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t gaps = half == 0 ? group.first_gaps : group.last_gaps;
    std::uint32_t address[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)  // the gaps of entries 0 to i
      address[i] = __dp4a(gaps, (0x01010101U >> (8 * (3 - i))) * unsigned{sizeof(Held<T>)}, at);
    at = address[3];
    const uint2 four = group.four(half);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto bits = static_cast<std::uint16_t>((i < 2 ? four.x : four.y) >> (16 * (i % 2)));
      Factor value;
      memcpy(&value, &bits, sizeof(value));
      sums[i % 2] += to_float(value) * to_float(*reinterpret_cast<const Held<T>*>(b + address[i]));
    }
  }
}

// B into shared memory, eight elements at a time where they lie side by side. Up to seven
// elements behind the last are copied too, which no entry of A names.
template <class T>
__device__ void copy_vector(Vector<const T> b, int cols, char* to) {
  if (b.stride != 1) {
    for (int i = threadIdx.x; i < cols; i += kThreads) {
      const T element = b.data[i * b.stride];
      if constexpr (kFp8<T>) reinterpret_cast<float*>(to)[i] = to_float(element);
      else reinterpret_cast<T*>(to)[i] = element;
    }
    return;
  }
  using Eight = std::conditional_t<kFp8<T>, uint2, uint4>;
  const auto* const from = reinterpret_cast<const Eight*>(b.data);
  for (int i = threadIdx.x; i * kVectorElements < cols; i += kThreads) {
    const Eight eight = from[i];
    if constexpr (kFp8<T>) {
      const auto* const x = reinterpret_cast<const T*>(&eight);
      auto* const four = reinterpret_cast<float4*>(to) + 2 * i;
      four[0] = make_float4(to_float(x[0]), to_float(x[1]), to_float(x[2]), to_float(x[3]));
      four[1] = make_float4(to_float(x[4]), to_float(x[5]), to_float(x[6]), to_float(x[7]));
    } else {
      reinterpret_cast<uint4*>(to)[i] = eight;
    }
  }
}

// Adds what the warps of a CTA have of each row of its slices, and writes C.
template <class TC>
__device__ void write_rows(const Arguments& in, const float* sums_of_rows, std::int32_t first_slice,
                           std::int32_t slices, int slice_rows, const Vector<TC>& c) {
  for (int i = threadIdx.x; i < slices * slice_rows; i += kThreads) {
    const int of_block = i / slice_rows;
    const std::int32_t row = in.row_ids[first_slice * slice_rows + i];
    const GapSlices::Warps warps = in.slice_warps[first_slice + of_block];
    float sum = 0;
    for (int w = warps.first; w < warps.end; ++w)
      sum += sums_of_rows[(of_block + w) * slice_rows + i % slice_rows];
    if (row >= 0) c.data[row * c.stride] = from_float<TC>(in.scale * sum);
  }
}

template <class T, class TC, int kGapBits>
__global__ void __launch_bounds__(kThreads, 1)
    multiply(Arguments in, Vector<const T> b, Vector<TC> c) {
  extern __shared__ __align__(16) char shared[];
  constexpr GapSlices::Shape kShape = Group<T, kGapBits>::kShape;
  constexpr unsigned kElementBytes = sizeof(Held<T>);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int slice_rows = GapSlices::kLanes / in.row_lanes;
  const std::int32_t first_slice = in.block_ptr[blockIdx.x];
  const std::int32_t slices = in.block_ptr[blockIdx.x + 1] - first_slice;
  const int range_index = blockIdx.x * kWarps + warp;
  const GapSlices::Range range = in.ranges[range_index];
  auto* const sums_of_rows =
      reinterpret_cast<float*>(shared + vector_bytes(in.cols, kElementBytes));

  const std::uint32_t* next = in.words + range.first_group * kShape.group_words();
  int to_load = range.groups;
  Group<T, kGapBits> groups[kAhead<T>];
  const auto load = [&](Group<T, kGapBits>& to) {
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
  for (std::int32_t first = range.first_group; first < end; first += kAhead<T>) {
#pragma unroll
    for (int i = 0; i < kAhead<T>; ++i) {
      if (first + i >= end) break;
      if (first + i == slice_end) {
        end_slice();
        slice_end = in.slice_ptr[++slice + 1];
      }
      const Group<T, kGapBits> group = groups[i];
      load(groups[i]);
      add_group<T>(group, shared, at, sums);
    }
  }
  if (range.groups > 0) end_slice();
  __syncthreads();
  write_rows(in, sums_of_rows, first_slice, slices, slice_rows, c);
}

}  // namespace spmmbench::gap_slices
