#pragma once
// Device code of csr_merge for a CTA whose rows are about as long as each other. Its groups take
// whole rows, and those of a warp neighbouring ones:
//
//   group 0   x x x  C           x: nonzero, C: the row of C is written
//   group 1   x x x x x  C       All groups of a warp write together, and wait for the longest row.
//   group 2   x x  C
//
// Along the merge path rows end in each group at another time, and the warp runs the end of a row
// for each of them alone. Where a CTA has few rows, several groups share each row. All groups of a
// warp share a row that is much longer than its neighbours.

#include "csr_merge/share.cuh"

namespace spmmbench::csr_merge {

enum class WholeRows { where_faster, never, always };

// The nonzeros of row i of the share: [begin, end) of those staged. Row share.rows is what the
// share has of the row that goes on in the next one.
struct StagedRow {
  int begin, end;
};
__device__ inline StagedRow staged_row(const int* ends, const Share& share, int i) {
  return {i == 0 ? 0 : ends[i - 1], i < share.rows ? ends[i] : share.entries};
}

// Adds the products of every `step`th nonzero from row.begin on to `sums`. `b`: the lane's piece of
// the first row of B.
template <class TB, int kCount, class Sum>
__device__ __forceinline__ void add_row(const Piece<TB>* b, const Entry<Sum>* staged, StagedRow row,
                                        int step, Sum (&sums)[kCount]) {
  const auto add = [&]<int kAtOnce>(std::integral_constant<int, kAtOnce>) {
    Piece<TB> raw[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int entry = row.begin + u * step;
      raw[u] = entry < row.end ? __ldca(b + staged[entry].b_piece) : Piece<TB>{};
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int entry = row.begin + u * step;
      const Sum value = entry < row.end ? staged[entry].value : 0;
      Sum x[kCount];
      unpack(raw[u], x, TB{});
#pragma unroll
      for (int j = 0; j < kCount; ++j) sums[j] += value * x[j];
    }
    row.begin += kAtOnce * step;
  };
  while (row.begin + kUnrollEnds * step < row.end) add(std::integral_constant<int, kUnroll>{});
  if (row.begin < row.end) add(std::integral_constant<int, kUnrollEnds>{});
}

// Adds up what `groups` neighbouring groups of a warp have.
template <int kLanes, int kCount, class Sum>
__device__ void add_up(Sum (&sums)[kCount], int groups) {
  for (int distance = kLanes; distance < kLanes * groups; distance *= 2) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) sums[j] += __shfl_xor_sync(kWarp, sums[j], distance);
  }
}

// Multiplies the rows of the share, and its parts of those that other CTAs share. `b`: as add_row
// takes it. All threads call it.
template <class TB, int kLanes, int kCount, class Sum, class Store, class AddPart>
__device__ void add_whole_rows(const Piece<TB>* b, const Entry<Sum>* staged, const int* ends,
                               const Share& share, const Store& store, const AddPart& add_part) {
  constexpr int kGroups = kGroupsOfWarp<kLanes>;
  const int group = static_cast<int>(threadIdx.x) % 32 / kLanes;
  const int rows = share.rows + (share.is_left ? 1 : 0);
  const int of_row = share.groups_of_row, at_once = kGroups / of_row;
  const int place = group / of_row, of_place = group % of_row;
  for (int first = static_cast<int>(threadIdx.x) / 32 * at_once; first < rows;
       first += kThreads / 32 * at_once) {
    const int i = first + place;
    const StagedRow row = i < rows ? staged_row(ends, share, i) : StagedRow{};
    const bool for_all = row.end - row.begin > share.most_alone;
    Sum sums[kCount] = {};
    if (!for_all) {
      if (of_row == 1) add_row<TB>(b, staged, row, 1, sums);
      else add_row<TB>(b, staged, StagedRow{row.begin + of_place, row.end}, of_row, sums);
    }
    add_up<kLanes>(sums, of_row);
    unsigned left = 0;  // lanes whose rows all groups share
    if (share.longest > share.most_alone)
      left = __ballot_sync(kWarp, for_all && threadIdx.x % (kLanes * of_row) == 0);
    for (; left != 0; left &= left - 1) {
      const int owner = __ffs(static_cast<int>(left)) - 1;
      const int begin = __shfl_sync(kWarp, row.begin, owner);
      const int end = __shfl_sync(kWarp, row.end, owner);
      Sum of_all[kCount] = {};
      add_row<TB>(b, staged, StagedRow{begin + group, end}, kGroups, of_all);
      add_up<kLanes>(of_all, kGroups);
#pragma unroll
      for (int j = 0; j < kCount; ++j)
        if (group == owner / kLanes) sums[j] = of_all[j];
    }
    if (i >= rows || of_place != 0) continue;
    if (i == share.rows || (i == 0 && share.continues)) add_part(share.first_row + i, sums);
    else store(share.first_row + i, sums);
  }
}

}  // namespace spmmbench::csr_merge
