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

// kColumns: of slices that are not packed, too. Without columns it waits for its predecessor before
// it touches values. The lanes of a warp take as many steps at a time as their places fill.
template <bool kColumns, class From, class To>
__global__ void __launch_bounds__(kSliceThreads)
    fill(const Slice* slices, std::int64_t count, const std::uint16_t* row_lengths,
         const std::int64_t* begins, const std::int32_t* first_columns, int places,
         const __grid_constant__ FillArguments<From, To> out) {
  constexpr int kUnroll = 8;  // steps whose loads are in flight together
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
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const unsigned lanes_below = (1U << lane) - 1U;
  const int log2_places = static_cast<int>(slice.log2_places);
  const int place = lane % places, place_of_row = place & ((1 << log2_places) - 1);
  const std::int64_t row = slice.first_row + (place >> log2_places);
  const int length = row_lengths[row];
  const std::int64_t begin = begins[row];
  const auto first_entry = static_cast<std::int64_t>(slice.first_entry);
  const bool packed = slice.packed != 0;
  const std::int32_t first_column = kColumns && packed ? first_columns[index] : 0;
  const int steps = static_cast<int>(slice.steps), at_once = 32 / places;
  int taken = 0;  // entries of the slice before the next step
  if constexpr (!kColumns) ptx::griddepcontrol_wait();
  for (int step = 0; step < steps; step += kUnroll * at_once) {
    const int first = ((step + lane / places) << log2_places) + place_of_row;
    const int stride = at_once << log2_places;  // in A, of the lane's own entries
    int place_of_entry[kUnroll];
    typename From::Bits given[kUnroll];
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      const bool is_there = first + k * stride < length;
      const unsigned lanes = __ballot_sync(0xFFFFFFFFU, is_there);
      place_of_entry[k] = taken + __popc(lanes & lanes_below);
      taken += __popc(lanes);
      if (is_there) given[k] = __ldca(out.given + begin + first + k * stride);
    }
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      if (first + k * stride >= length) continue;
      const std::int64_t at = first_entry + place_of_entry[k];
      const auto value = converted<From, To>(given[k], out.precision);
      const std::int32_t column = kColumns ? __ldg(out.a_columns + begin + first + k * stride) : 0;
      if (packed && kColumns)
        out.packed[at] = static_cast<std::uint32_t>(column - first_column) |
                         static_cast<std::uint32_t>(value) << 16;
      else if (packed)  // the high half alone
        reinterpret_cast<std::uint16_t*>(out.packed)[2 * at + 1] =
            static_cast<std::uint16_t>(value);
      if (out.values != nullptr) {
        if (kColumns) out.col_idx[at] = column;
        out.values[at] = value;
      }
    }
  }
}

}  // namespace spmmbench::jagged
