#pragma once
// Sums of panels (common/panel_schedule.hpp), as mma and wgmma leave them in registers: to C, or to
// a workspace where several CTAs share a panel. Parts are added in a fixed order, whichever
// warp comes last, so every launch gives the same bits.

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
    default: break;  // fp64 is not added in fp32
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

// Adds the parts from the first but `added` on to `sums`, in the order in which parts are added:
// the last one, then the others from `first` on. A lane's sums lie four at a time 128 floats apart,
// parts `distance` floats.
template <int kSums>
__device__ void add_parts(const float* first, int parts, int distance, int added,
                          float (&sums)[kSums]) {
  // The loads of several parts are in flight together, if registers allow.
  constexpr int kRegisters = 112;  // for sums and loads
  constexpr int kTogether = kRegisters / kSums > 1 ? kRegisters / kSums - 1 : 1;  // parts
  constexpr int kRun = kSums < 64 ? kSums : 64;  // of a part's sums
  static_assert(kSums % kRun == 0);
  for (; added < parts; added += kTogether) {
#pragma unroll
    for (int run = 0; run < kSums; run += kRun) {
      float4 x[kTogether][kRun / 4];
#pragma unroll
      for (int p = 0; p < kTogether; ++p) {
        const int next = min(added + p, parts - 1);
        const int part = next == 0 ? parts - 1 : next - 1;
        const float* const from = first + part * distance + run * 32;
#pragma unroll
        for (int i = 0; i < kRun / 4; ++i)
          x[p][i] = __ldcg(reinterpret_cast<const float4*>(from + i * 128));
      }
#pragma unroll
      for (int p = 0; p < kTogether; ++p) {
        const bool counts = added + p < parts;  // no branch: loads would wait behind it
#pragma unroll
        for (int i = 0; i < kRun; i += 4) {
          const float4 four = x[p][i / 4];
          sums[run + i] += counts ? four.x : 0;
          sums[run + i + 1] += counts ? four.y : 0;
          sums[run + i + 2] += counts ? four.z : 0;
          sums[run + i + 3] += counts ? four.w : 0;
        }
      }
    }
  }
}

// Adds up the parts of the panel's sums, level by level (PanelWorkspace): the warp that comes last
// in a bundle adds its parts, the bundle's last part first, and takes the sum to the next level, in
// the place of the first part. True in the warp that is last of all, which then has the sums of all
// parts. No warp waits.
template <int kFragmentRows, int kCount>
__device__ bool join_parts(const PanelWorkspace& workspace, const PanelPiece& piece, int warp,
                           float (&acc)[kFragmentRows][kCount]) {
  constexpr int kSums = kFragmentRows * kCount;  // of a lane
  constexpr int kTileFloats = kSums * 32;
  auto& sums = reinterpret_cast<float(&)[kSums]>(acc);
  const int lane = threadIdx.x % 32;
  const unsigned bundle = piece.bundle;
  const int tile = piece.tile + warp * piece.parts;
  int counter = tile, tiles = 1;  // of the level: the first counter; from part to part
  for (unsigned part = piece.part, parts = piece.parts; parts > 1;) {
    const auto at = [&](unsigned p) {
      return workspace.partial + std::int64_t{tile + static_cast<int>(p) * tiles} * kTileFloats +
             lane * 4;
    };
    const unsigned first = part - part % bundle;
    const int count = static_cast<int>(min(bundle, parts - first));
    unsigned* const arrivals = workspace.arrivals + counter + part / bundle;
    // The last part of a bundle is most often the last to come, and needs not go through memory.
    const bool is_last_part = part - first + 1 == static_cast<unsigned>(count);
    if (is_last_part && others_have_arrived(arrivals, count, lane)) {
      add_parts(at(first), count, tiles * kTileFloats, 1, sums);
    } else {
      float* const own = at(part);
#pragma unroll
      for (int i = 0; i < kSums; i += 4)
        __stcg(reinterpret_cast<float4*>(own + i * 32),
               make_float4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]));
      if (!arrives_last(arrivals, count, lane)) return false;
#pragma unroll
      for (float& sum : sums) sum = 0;
      add_parts(at(first), count, tiles * kTileFloats, 0, sums);
    }
    part /= bundle;
    parts = (parts + bundle - 1) / bundle;
    counter += static_cast<int>(parts);
    tiles *= static_cast<int>(bundle);
  }
  return true;
}

}  // namespace spmmbench
