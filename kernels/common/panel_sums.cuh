#pragma once
// Sums of panels (common/panel_schedule.hpp), as mma and wgmma leave them in registers: to C, or to
// a workspace where several CTAs share a panel. The warp that comes last adds the parts in their
// order, so the result does not depend on which one is last.

#include <cstdint>

#include "common/arrive_and_sum.cuh"
#include "common/panel_schedule.hpp"
#include "gpu/element.cuh"
#include "spmmbench/device.hpp"

namespace spmmbench {

// Sums of 16 rows from `row` on, as mma and wgmma leave them, to C. Type and layout are tested
// outside of the loop: an unrolled choice among them is more code than the instruction cache holds.
template <class T, Layout kLayout, int kCount>
__device__ void store_rows_as(const DenseView& c, std::int64_t row, std::int64_t column,
                              const float (&sums)[kCount]) {
  const int lane = threadIdx.x % 32;
  row += lane / 4;
  column += 2 * (lane % 4);
  const std::int64_t rows = c.rows - row, columns = c.cols - column;  // left from here
  const std::int64_t down = kLayout == Layout::row_major ? c.ld : 1;
  const std::int64_t right = kLayout == Layout::row_major ? 1 : c.ld;
  T* const to = static_cast<T*>(c.data) + row * down + column * right;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int r = 8 * (i % 4 / 2), j = i / 4 * 8 + i % 2;
    if (r < rows && j < columns) to[r * down + j * right] = from_float<T>(sums[i]);
  }
}
template <class T, int kCount>
__device__ void store_rows_in(const DenseView& c, std::int64_t row, std::int64_t column,
                              const float (&sums)[kCount]) {
  if (c.layout == Layout::row_major) store_rows_as<T, Layout::row_major>(c, row, column, sums);
  else store_rows_as<T, Layout::col_major>(c, row, column, sums);
}
template <int kCount>
__device__ void store_rows(const DenseView& c, std::int64_t row, std::int64_t column,
                           const float (&sums)[kCount]) {
  switch (c.type) {
    case ElementType::f32: store_rows_in<float>(c, row, column, sums); break;
    case ElementType::f16: store_rows_in<__half>(c, row, column, sums); break;
    case ElementType::bf16: store_rows_in<__nv_bfloat16>(c, row, column, sums); break;
  }
}

// A warp's sums of its panel: in `kFragmentRows` times 16 rows.
template <int kFragmentRows, int kCount>
__device__ void store_panel(const DenseView& c, const PanelPiece& piece, int warp,
                            const float (&acc)[kFragmentRows][kCount]) {
#pragma unroll
  for (int f = 0; f < kFragmentRows; ++f)
    store_rows(c, (std::int64_t{piece.first_panel + warp} * kFragmentRows + f) * 16, piece.column,
               acc[f]);
}

// Adds up the parts of the panel's sums. True in the warp that comes last, which then has the sums
// of all parts.
template <int kFragmentRows, int kCount>
__device__ bool join_parts(const PanelWorkspace& workspace, const PanelPiece& piece, int warp,
                           float (&acc)[kFragmentRows][kCount]) {
  constexpr int kSums = kFragmentRows * kCount;  // of a lane
  const int lane = threadIdx.x % 32;
  float* const first =
      workspace.partial + (std::int64_t{piece.tile} + warp * piece.parts) * kSums * 32 + lane * 4;
  const PartialSums partial = {.own = first + std::int64_t{piece.part} * kSums * 32,
                               .arrivals = workspace.arrivals + piece.arrival + warp,
                               .parts = piece.parts,
                               .ordered = true,
                               .first = first,
                               .slot_floats = kSums * 32};
  return arrive_and_sum<128>(partial, lane, reinterpret_cast<float(&)[kSums]>(acc));
}

}  // namespace spmmbench
