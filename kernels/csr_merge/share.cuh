#pragma once
// The share of a CTA: how it is found and copied to shared memory, and whether its groups take
// whole rows or places of the merge path.

#include <bit>
#include <climits>
#include <cstdint>

#include "csr_merge/device.cuh"
#include "ptx/griddepcontrol.cuh"

namespace spmmbench::csr_merge {

// How many rows from its guess a lane looks: near it row by row, then four times as far from lane
// to lane.
__device__ inline std::int64_t probe_distance(int lane) {
  constexpr int kMiddle = 16;
  constexpr int kNear = 8;  // rows
  const int place = lane - kMiddle;
  if (place >= kNear) return std::int64_t{kNear} << 2 * (place - kNear);
  if (place < -kNear) return -(std::int64_t{kNear} << 2 * (-kNear - place));
  return place;
}

// How many rows of A end before place `diagonal` of the merge path. The end of row r is at place
// row_ptr[r + 1] + r. All lanes of a warp search together: each round leaves a 33rd. The first one
// of many rows looks around the row where the place would be if all rows were alike.
__device__ inline std::int64_t rows_before(const DeviceCsr& a, std::int64_t diagonal, int lane) {
  std::int64_t low = 0, high = a.rows < diagonal ? a.rows : diagonal;
  const auto ends_before = [&](std::int64_t row) {
    return row < high && __ldg(a.row_ptr + row + 1) + row < diagonal;
  };
  if (high > 32) {
    const double share = static_cast<double>(diagonal) / static_cast<double>(a.rows + a.nnz);
    const auto guess = static_cast<std::int64_t>(share * static_cast<double>(a.rows));
    const std::int64_t row = guess + probe_distance(lane);
    const int passed = __popc(__ballot_sync(kWarp, row < 0 || ends_before(row)));
    if (passed > 0) low = max(low, min(high, guess + probe_distance(passed - 1) + 1));
    if (passed < 32) high = max(low, min(high, guess + probe_distance(passed)));
  }
  while (low < high) {
    const std::int64_t step = (high - low + 32) / 33;
    const std::int64_t row = low + (lane + 1) * step - 1;
    const int passed = __popc(__ballot_sync(kWarp, ends_before(row)));
    const std::int64_t next = low + (passed + 1) * step - 1;
    low += passed * step;
    high = passed < 32 && next < high ? next : high;
  }
  return low;
}

// The share of one CTA: places [begin, end) of the merge path.
struct Share {
  std::int64_t first_row, last_row;  // in progress at begin and at end; last_row may be `rows`
  std::int64_t first_entry;
  int rows, entries;        // ends of rows and nonzeros in the share
  bool continues, is_left;  // first_row began earlier; last_row goes on later
  // If groups take whole rows (not set where they do not, see kTakesWholeRows):
  int groups_of_row;  // that share a row; a power of two, at most those of a warp
  int most_alone;     // nonzeros of a row; all groups of a warp share a longer one
  int longest;        // row, in nonzeros
  // Steps of all warps, in each of which all groups of a warp multiply a nonzero: for rows that
  // groups take alone, and for longer ones.
  int steps_alone, steps_of_long;
};

template <int kLanes>
constexpr int kGroupsOfWarp = 32 / kLanes;
// Steps in which the groups of a warp add up what each has of a row. Two shuffles with their
// additions take about as long as a nonzero.
template <int kLanes, int kCount>
constexpr int kStepsOfLong = 2 + std::countr_zero(unsigned{kGroupsOfWarp<kLanes>}) * kCount / 2;
// Groups that are wider hardly wait for each other, and products of a vector were made while A was
// copied: both walk the merge path.
template <int kLanes, int kCount>
constexpr bool kTakesWholeRows = (kLanes <= 4) && (kCount > 1);

// How groups would take the rows of the share. One thread calls it. A row is long where it has more
// than twice the mean, and so much more that to share it saves what adding up takes, and a batch of
// loads at least.
template <int kLanes, int kCount>
__device__ void plan_whole_rows(Share& share) {
  constexpr int kToAddUp = kStepsOfLong<kLanes, kCount>;
  constexpr int kLeastOfGroup = kToAddUp > kUnroll ? kToAddUp : kUnroll;
  const int rows = share.rows + 1;
  int groups = 1;
  while (groups < kGroupsOfWarp<kLanes> && 2 * groups * rows <= kThreads / kLanes) groups *= 2;
  share.groups_of_row = groups;
  share.most_alone = 2 * share.entries / rows + kLeastOfGroup * groups;
  share.longest = share.steps_alone = share.steps_of_long = 0;
}

// All threads call it. `share` lies in shared memory, where it costs no registers.
template <int kLanes, int kCount>
__device__ void find_share(const DeviceCsr& a, int places, Share& share) {
  const std::int64_t all = a.rows + a.nnz;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * places;
  const std::int64_t end = begin + places < all ? begin + places : all;
  const int warp = threadIdx.x / 32;
  if (warp < 2) {
    const std::int64_t row = rows_before(a, warp == 0 ? begin : end, threadIdx.x % 32);
    if (threadIdx.x % 32 == 0) (warp == 0 ? share.first_row : share.last_row) = row;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const std::int64_t first = share.first_row, last = share.last_row;
    share.first_entry = begin - first;
    share.rows = static_cast<int>(last - first);
    share.entries = static_cast<int>(end - begin) - share.rows;
    share.continues = __ldg(a.row_ptr + first) + first < begin;
    share.is_left = last < a.rows && __ldg(a.row_ptr + last) + last < end;
    if constexpr (kTakesWholeRows<kLanes, kCount>) plan_whole_rows<kLanes, kCount>(share);
  }
  __syncthreads();
}

// The end of each row of the share, and what whole rows would take. All threads call it.
template <int kLanes, int kCount>
__device__ void stage_rows(const DeviceCsr& a, Share& share, int* ends) {
  constexpr int kGroups = kGroupsOfWarp<kLanes>;
  // To begin rows and to write them; chosen with the factors of whole_rows_take_less.
  constexpr int kStepsOfRow = 4;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int at_once = kGroups / share.groups_of_row;
  // The longest of rows that a warp takes at once is sought in 32 rows of each warp, which lie
  // apart.
  const int rounds = max(1, share.rows / kThreads), sampled = warp % rounds;
  int steps_of_rows = 0, steps_of_long = 0, longest = 0;
  for (int round = 0; round * kThreads + warp * 32 <= share.rows; ++round) {
    const int i = round * kThreads + static_cast<int>(threadIdx.x);
    int length = 0;
    if (i <= share.rows) {
      const std::int64_t* const ptr = a.row_ptr + share.first_row + i;
      const bool ends_here = i < share.rows;
      const int end =
          ends_here ? static_cast<int>(__ldg(ptr + 1) - share.first_entry) : share.entries;
      length = end - (i == 0 ? 0 : static_cast<int>(__ldg(ptr) - share.first_entry));
      ends[i] = ends_here ? end : INT_MAX;
    }
    longest = max(longest, length);
    if (length > share.most_alone) {
      steps_of_long += length / kGroups + kStepsOfLong<kLanes, kCount>;
      length = 0;
    }
    if (at_once > 1 && round != sampled) continue;
    for (int distance = 1; distance < at_once; distance *= 2)
      length = max(length, __shfl_xor_sync(kWarp, length, distance));
    if (i <= share.rows && lane % at_once == 0)
      steps_of_rows += length / share.groups_of_row + kStepsOfRow;
  }
  if (at_once > 1 && share.rows > kThreads)
    steps_of_rows = static_cast<int>(static_cast<float>(steps_of_rows) *
                                     (static_cast<float>(share.rows) / kThreads));
  steps_of_rows = __reduce_add_sync(kWarp, steps_of_rows);
  steps_of_long = __reduce_add_sync(kWarp, steps_of_long);
  longest = __reduce_max_sync(kWarp, longest);
  if (lane != 0) return;
  atomicAdd(&share.steps_alone, steps_of_rows);
  if (steps_of_long > 0) atomicAdd(&share.steps_of_long, steps_of_long);
  atomicMax(&share.longest, longest);
}

// Copies the share's part of A to shared memory: its nonzeros, and in `ends` before which of them
// each row ends. All threads call it.
template <int kLanes, int kCount, class TB>
__device__ void stage_share(const DeviceCsr& a, const TB* __restrict__ b, std::uint32_t row_step,
                            float b_scale, Share& share, Staged<TB, kCount>* staged, int* ends) {
  if constexpr (kTakesWholeRows<kLanes, kCount>) {
    stage_rows<kLanes, kCount>(a, share, ends);
  } else {
    for (int i = threadIdx.x; i < share.rows; i += kThreads)
      ends[i] = static_cast<int>(__ldg(a.row_ptr + share.first_row + i + 1) - share.first_entry);
    if (threadIdx.x == 0) ends[share.rows] = INT_MAX;
  }
  // Until here only A was read, since the previous launch may still be running.
  if constexpr (kCount == 1) ptx::griddepcontrol_wait();
#pragma unroll(kCount == 1 ? 8 : 4)
  for (int e = threadIdx.x; e < share.entries; e += kThreads) {
    const std::int32_t column = __ldcs(a.col_idx + share.first_entry + e);
    SumOf<TB> value = to_sum(load_once(static_cast<const TB*>(a.values) + share.first_entry + e));
    if constexpr (sizeof(TB) == 1) value *= a.scale * b_scale;
    // Neighbouring lanes have neighbouring nonzeros, whose columns are most often close together.
    if constexpr (kCount == 1) staged[e] = value * to_sum(b[std::int64_t{column} * row_step]);
    else staged[e] = {static_cast<std::uint32_t>(column) * row_step, value};
  }
}

// Whether whole rows are expected to take less time than the places of the merge path, of which
// each group has `items`. The factors are those of the least time on 35 matrices, made less kind to
// uneven rows (docs/decisions/csr-merge.md).
template <int kLanes>
__device__ bool whole_rows_take_less(const Share& share, int items) {
  constexpr int kWarps = kThreads / 32;
  constexpr int kStepsOfPlace = 3, kStepsOfEnd = 4;
  // Ends of rows at the same place of several groups count once.
  const int of_merge_path =
      kWarps * kStepsOfPlace * items + kStepsOfEnd * min(share.rows, kWarps * items);
  // Warps take rows in turn: some take them once more than others.
  const int at_once = kGroupsOfWarp<kLanes> / share.groups_of_row;
  const float turns = static_cast<float>(share.rows + 1) / static_cast<float>(at_once * kWarps);
  const int alone = static_cast<int>(static_cast<float>(share.steps_alone) * ceilf(turns) / turns);
  const int longest =
      min(share.longest, share.most_alone) / share.groups_of_row +
      (share.longest > share.most_alone ? share.longest / kGroupsOfWarp<kLanes> : 0);
  return alone + share.steps_of_long + kWarps * longest <= of_merge_path;
}

}  // namespace spmmbench::csr_merge
