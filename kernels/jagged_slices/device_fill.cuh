#pragma once
// Entries of A brought into slices, or new values alone: a warp for each slice.

#include <cuda_runtime.h>

#include <cstdint>

#include "gpu/new_values.cuh"
#include "jagged_slices/format.hpp"
#include "ptx/griddepcontrol.cuh"

namespace spmmbench::jagged {

using Slice = JaggedSlices::Slice;

constexpr int kSliceThreads = 128;  // of kernels with a warp for each slice

template <class From, class To>
struct FillArguments {
  using Given = typename From::Bits;
  using Bits = typename To::Bits;

  const std::int32_t* a_columns;
  const Given* given;
  Precision precision;  // which `given` is rounded to
  std::uint32_t* packed;
  std::int32_t* col_idx;
  Bits* values;
  Bits* a_values;  // of A, `nnz` of them, which CTAs behind those of the slices write
  std::int64_t nnz;
};

// The entries of one slice, and which of them a lane brings.
struct LaneOfSlice {
  std::int64_t first_entry;         // of the slice
  std::int64_t begin;               // of the lane's row in A
  int length, log2_places, of_row;  // of that row; its places; the lane's place among them
  int first_step, at_once, steps;   // of the lane; steps that a warp takes together; of the slice
  std::int32_t first_column;        // that packed columns are relative to
  bool packed;
};

// Takes kTogether steps at a time, whose loads are in flight together.
template <int kTogether, bool kColumns, class From, class To>
__device__ void fill_lane(const LaneOfSlice& at, const FillArguments<From, To>& out) {
  const unsigned lanes_below = (1U << (threadIdx.x % 32)) - 1U;
  const int stride = at.at_once << at.log2_places;  // in A, of the lane's own entries
  int taken = 0;                                    // entries of the slice before the next step
#pragma unroll(kTogether == 1 ? 4 : 1)
  for (int step = 0; step < at.steps; step += kTogether * at.at_once) {
    const int first = ((step + at.first_step) << at.log2_places) + at.of_row;
    int place[kTogether];
    typename From::Bits given[kTogether];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      const bool is_there = first + k * stride < at.length;
      const unsigned lanes = __ballot_sync(0xFFFFFFFFU, is_there);
      place[k] = taken + __popc(lanes & lanes_below);
      taken += __popc(lanes);
      if (is_there) given[k] = __ldca(out.given + at.begin + first + k * stride);
    }
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      if (first + k * stride >= at.length) continue;
      const std::int64_t to = at.first_entry + place[k];
      const auto value = converted<From, To>(given[k], out.precision);
      const std::int32_t column =
          kColumns ? __ldg(out.a_columns + at.begin + first + k * stride) : 0;
      if (at.packed && kColumns)
        out.packed[to] = static_cast<std::uint32_t>(column - at.first_column) |
                         static_cast<std::uint32_t>(value) << 16;
      else if (at.packed)  // the high half alone
        reinterpret_cast<std::uint16_t*>(out.packed)[2 * to + 1] =
            static_cast<std::uint16_t>(value);
      if (out.values != nullptr) {
        if (kColumns) out.col_idx[to] = column;
        out.values[to] = value;
      }
    }
  }
}

// kColumns: of slices that are not packed, too. Without columns it waits for its predecessor before
// it touches values. The lanes of a warp take as many steps at a time as their places fill.
template <bool kColumns, class From, class To>
__global__ void __launch_bounds__(kSliceThreads)
    fill(const Slice* slices, std::int64_t count, const std::uint16_t* row_lengths,
         const std::int64_t* begins, const std::int32_t* first_columns, int places,
         const __grid_constant__ FillArguments<From, To> out) {
  constexpr int kTogether = 8;  // where a slice has fewer places than a warp has lanes
  constexpr int kSlices = kSliceThreads / 32;
  const std::int64_t index = std::int64_t{blockIdx.x} * kSlices + threadIdx.x / 32;
  if constexpr (!kColumns) {
    const std::int64_t ctas = (count + kSlices - 1) / kSlices;
    if (blockIdx.x >= ctas) {
      ptx::griddepcontrol_wait();
      return convert_part<kSliceThreads, From, To>(out.given, out.precision, out.a_values, out.nnz,
                                                   blockIdx.x - ctas);
    }
  }
  if (index >= count) return;
  const Slice slice = slices[index];
  const int lane = static_cast<int>(threadIdx.x) % 32, place = lane % places;
  const int log2_places = static_cast<int>(slice.log2_places);
  const std::int64_t row = slice.first_row + (place >> log2_places);
  const bool packed = slice.packed != 0;
  const LaneOfSlice at{.first_entry = static_cast<std::int64_t>(slice.first_entry),
                       .begin = begins[row],
                       .length = row_lengths[row],
                       .log2_places = log2_places,
                       .of_row = place & ((1 << log2_places) - 1),
                       .first_step = lane / places,
                       .at_once = 32 / places,
                       .steps = static_cast<int>(slice.steps),
                       .first_column = kColumns && packed ? first_columns[index] : 0,
                       .packed = packed};
  if constexpr (!kColumns) ptx::griddepcontrol_wait();
  if (at.at_once > 1) fill_lane<kTogether, kColumns>(at, out);
  else fill_lane<1, kColumns>(at, out);
}

// New values brought into the operand alone.
template <class From, class To>
__global__ void __launch_bounds__(kSliceThreads)
    convert(const __grid_constant__ FillArguments<From, To> out) {
  ptx::griddepcontrol_wait();
  convert_part<kSliceThreads, From, To>(out.given, out.precision, out.a_values, out.nnz,
                                        blockIdx.x);
}

}  // namespace spmmbench::jagged
