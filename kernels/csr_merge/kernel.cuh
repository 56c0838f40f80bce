#pragma once
// The kernel of csr_merge. csr_merge.cu explains how work is divided.

#include "csr_merge/merge_path.cuh"
#include "csr_merge/whole_rows.cuh"

namespace spmmbench::csr_merge {

// Groups of kLanes lanes, each with `items` places of the merge path. A lane holds kCount columns:
// a piece of a row of B, or the one element of a vector. `row_step`: from one row of B to the next,
// in pieces, or for a vector in elements.
template <class TB, int kLanes, int kCount>
__global__ void __launch_bounds__(kThreads, kCount == 1 ? kVectorCtasPerSm : kCtasPerSm)
    csr_merge_kernel(const __grid_constant__ DeviceCsr a, const TB* __restrict__ b,
                     std::uint32_t row_step, float b_scale, const __grid_constant__ Rows c,
                     std::int64_t n, int items, WholeRows whole_rows,
                     const __grid_constant__ Sums<SumOf<TB>> shared_sums) {
  static_assert(kCount == 1 ? kLanes == 1 : kCount == kPerPiece<TB>);
  constexpr int kGroups = kThreads / kLanes;
  constexpr bool kIsVector = kCount == 1;
  using Sum = SumOf<TB>;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ Share share;
  __shared__ int first_rows[kGroups + 1];
  __shared__ Sum heads[kCount][kThreads];
  __shared__ Tails<Sum, kLanes, kCount> tails;

  const int places = kGroups * items;
  find_share<kLanes, kCount>(a, places, share);
  auto* const staged = reinterpret_cast<Staged<TB, kCount>*>(memory);
  int* const ends = reinterpret_cast<int*>(staged + share.entries);
  stage_share<kLanes, kCount>(a, b, row_step, b_scale, share, staged, ends);
  __syncthreads();
  const int group = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const std::int64_t column =
      kCount == 1 ? 0 : (static_cast<std::int64_t>(blockIdx.y) * kLanes + lane) * kCount;
  const Columns<Sum, kCount, kLanes> own{column, n};
  const auto store = [&](std::int64_t row, const Sum(&sums)[kCount]) { own.store(c, row, sums); };
  const auto add_part = [&](std::int64_t row, const Sum(&part)[kCount]) {
    own.add_part(shared_sums, c, a, row, places, lane, part);
  };
  if constexpr (kTakesWholeRows<kLanes, kCount>) {
    if (whole_rows == WholeRows::always ||
        (whole_rows == WholeRows::where_faster && whole_rows_take_less<kLanes>(share, items))) {
      ptx::griddepcontrol_wait();  // until here only A was read
      const auto* const b_lane = reinterpret_cast<const Piece<TB>*>(b + (column < n ? column : 0));
      add_whole_rows<TB, kLanes, kCount, Sum>(b_lane, staged, ends, share, store, add_part);
      ptx::griddepcontrol_launch_dependents();
      return;
    }
  }

  const int all = share.rows + share.entries;
  find_groups<kGroups>(ends, items, share, first_rows);
  __syncthreads();
  const int first_row = first_rows[group], last_row = first_rows[group + 1];
  const int last_entry = min((group + 1) * items, all) - last_row;
  Position<Sum, kCount> at{first_row, ends[first_row], min(group * items, all) - first_row, {}};

  // The first row that ends may have begun in an earlier group: it waits for what that has.
  const auto end_row = [&] {
    if (at.row == first_row) {
#pragma unroll
      for (int j = 0; j < kCount; ++j) heads[j][threadIdx.x] = at.sums[j];
    } else {
      store(share.first_row + at.row, at.sums);
    }
#pragma unroll
    for (int j = 0; j < kCount; ++j) at.sums[j] = 0;
    at.end = ends[++at.row];
  };
  if constexpr (kIsVector) {
    for (; at.entry < last_entry; ++at.entry) {
      while (at.end == at.entry) end_row();
      at.sums[0] += staged[at.entry];
    }
  } else {
    ptx::griddepcontrol_wait();  // until here only A was read
    const auto* const b_lane = reinterpret_cast<const Piece<TB>*>(b + (column < n ? column : 0));
    add_rows_of_b<TB>(b_lane, staged, last_entry, at, end_row);
  }
  while (at.row < last_row) end_row();
  ptx::griddepcontrol_launch_dependents();

  end_shared_rows(at.sums, heads, first_row, last_row, group == kGroups - 1, share, tails, store,
                  add_part);
}

}  // namespace spmmbench::csr_merge
