#pragma once
// Device code of csr_merge for groups that take places of the merge path.

#include "csr_merge/share.cuh"

namespace spmmbench::csr_merge {

// How many rows of a CTA end before place `diagonal` of its share. Their ends are counted from its
// first nonzero.
__device__ inline int rows_before(const int* ends, int rows, int diagonal) {
  int low = 0, high = min(rows, diagonal);
  while (low < high) {
    const int middle = (low + high) / 2;
    if (ends[middle] + middle < diagonal) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Where a group is among its places, and its sums of the row that it is in, which ends before the
// nonzero `end`.
template <class Sum, int kCount>
struct Position {
  int row, end, entry;
  Sum sums[kCount];
};

// Adds the products of a group's nonzeros up to `last_entry`. `b`: the lane's piece of the first
// row of B. `end_row` stores the sums, begins the next row and moves `end` on.
template <class TB, int kCount, class Sum, class EndRow>
__device__ void add_rows_of_b(const Piece<TB>* b, const Entry<Sum>* staged, int last_entry,
                              Position<Sum, kCount>& at, const EndRow& end_row) {
  const auto add = [&](const Piece<TB>& raw, Sum value) {
    Sum x[kCount];
    unpack(raw, x, TB{});
#pragma unroll
    for (int j = 0; j < kCount; ++j) at.sums[j] += value * x[j];
  };
  while (at.entry < last_entry) {
    if (min(at.end, last_entry) >= at.entry + kUnroll) {  // no row ends before the last of these
      Piece<TB> raw[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) raw[u] = __ldca(b + staged[at.entry + u].b_piece);
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) add(raw[u], staged[at.entry + u].value);
      at.entry += kUnroll;
      continue;
    }
    Piece<TB> raw[kUnrollEnds];
#pragma unroll
    for (int u = 0; u < kUnrollEnds; ++u)
      raw[u] = __ldca(b + staged[min(at.entry + u, last_entry - 1)].b_piece);
#pragma unroll
    for (int u = 0; u < kUnrollEnds; ++u) {
      if (at.entry + u >= last_entry) break;
      while (at.end == at.entry + u) end_row();
      add(raw[u], staged[at.entry + u].value);
    }
    at.entry += kUnrollEnds;
  }
}

// Where groups begin among the rows of the share, and where the last ends.
template <int kGroups>
__device__ void find_groups(const int* ends, int items, const Share& share,
                            int (&first_rows)[kGroups + 1]) {
  if (threadIdx.x <= kGroups)
    first_rows[threadIdx.x] = rows_before(
        ends, share.rows, min(static_cast<int>(threadIdx.x) * items, share.rows + share.entries));
  if (kGroups == kThreads && threadIdx.x == 0) first_rows[kGroups] = share.rows;
}

// What the last group of each warp leaves, and whether a row ends in the warp.
template <class Sum, int kLanes, int kCount>
struct Tails {
  Sum sums[kThreads / 32][kLanes][kCount];
  bool ends[kThreads / 32];
};

// What earlier groups have of the row in which a group begins.
template <class Sum, int kCount>
struct Carried {
  Sum of_groups[kCount];  // of the same warp
  Sum of_warps[kCount];   // earlier ones
  bool ended_before;      // a row ends in an earlier group of the warp: `of_warps` is of that row
  bool ended;             // a row ends in this group or in an earlier one of the warp
};

// A segmented scan over groups: what is left of the last row of each goes to the group in which it
// ends. `sums` becomes what the groups of the warp up to this one have of this one's last row. All
// threads call it.
template <class Sum, int kLanes, int kCount>
__device__ Carried<Sum, kCount> carry(Sum (&sums)[kCount], bool has_end,
                                      Tails<Sum, kLanes, kCount>& tails) {
  const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;
  Carried<Sum, kCount> carried;
  carried.ended = has_end;
#pragma unroll
  for (int distance = kLanes; distance < 32; distance *= 2) {
    const bool ended_before = __shfl_up_sync(kWarp, carried.ended, distance);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const Sum before = __shfl_up_sync(kWarp, sums[j], distance);
      if (warp_lane >= distance && !carried.ended) sums[j] += before;
    }
    carried.ended |= warp_lane >= distance && ended_before;
  }
  carried.ended_before = kLanes < 32 ? __shfl_up_sync(kWarp, carried.ended, kLanes % 32) : false;
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    carried.of_groups[j] = kLanes < 32 ? __shfl_up_sync(kWarp, sums[j], kLanes % 32) : 0;
    if (warp_lane < kLanes) carried.of_groups[j] = 0;
  }
  if (warp_lane < kLanes) carried.ended_before = false;
  if (warp_lane >= 32 - kLanes) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) tails.sums[warp][threadIdx.x % kLanes][j] = sums[j];
    tails.ends[warp] = carried.ended;
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kCount; ++j) carried.of_warps[j] = 0;
  for (int before = warp - 1; before >= 0; --before) {
#pragma unroll
    for (int j = 0; j < kCount; ++j)
      carried.of_warps[j] += tails.sums[before][threadIdx.x % kLanes][j];
    if (tails.ends[before]) break;
  }
  return carried;
}

// Ends what a group alone cannot: the first row that ends in it, whose sums are in `heads`, and
// behind the last group the row that goes on in another CTA. `sums`: of the group's last row. All
// threads call it.
template <class Sum, int kLanes, int kCount, class Store, class AddPart>
__device__ void end_shared_rows(Sum (&sums)[kCount], const Sum (&heads)[kCount][kThreads],
                                int first_row, int last_row, bool is_last, const Share& share,
                                Tails<Sum, kLanes, kCount>& tails, const Store& store,
                                const AddPart& add_part) {
  const bool has_end = last_row > first_row;
  const Carried<Sum, kCount> carried = carry(sums, has_end, tails);
  if (has_end) {
    Sum of_first[kCount];
#pragma unroll
    for (int j = 0; j < kCount; ++j)
      of_first[j] = carried.of_groups[j] +
                    (heads[j][threadIdx.x] + (carried.ended_before ? 0 : carried.of_warps[j]));
    const std::int64_t to = share.first_row + first_row;
    if (first_row == 0 && share.continues) add_part(to, of_first);
    else store(to, of_first);
  }
  if (is_last && share.is_left) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) sums[j] += carried.ended ? 0 : carried.of_warps[j];
    add_part(share.last_row, sums);
  }
}

}  // namespace spmmbench::csr_merge
