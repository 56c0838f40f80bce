#pragma once
// Device code of csr_merge. csr_merge.cu explains how work is divided.

#include <climits>
#include <cstdint>
#include <type_traits>

#include "common/sums.cuh"
#include "ptx/griddepcontrol.cuh"
#include "spmmbench/device_csr.hpp"

namespace spmmbench::csr_merge {

using spmmbench::unpack;

constexpr int kThreads = 256;
constexpr int kCtasPerSm = 4;        // 64 registers: all loads of a batch stay in flight
constexpr int kVectorCtasPerSm = 8;  // 32 registers
// Rows of B that a group has in flight, and the same where rows of A end among their nonzeros.
constexpr int kUnroll = 8, kUnrollEnds = 4;
constexpr unsigned kWarp = 0xFFFFFFFFU;

// What a lane loads of a row of B: 16 bytes, in fp8 8, so that it has no more sums than in 16 bits.
template <class T>
using Piece = std::conditional_t<sizeof(T) == 1, uint2, uint4>;
template <class T>
constexpr int kPerPiece = static_cast<int>(sizeof(Piece<T>) / sizeof(T));

template <class Eight>
__device__ void unpack(const uint2& raw, float (&out)[8], Eight type_of_b) {
  float sixteen[16];  // the compiler leaves out the second half
  spmmbench::unpack(make_uint4(raw.x, raw.y, 0, 0), sixteen, type_of_b);
#pragma unroll
  for (int j = 0; j < 8; ++j) out[j] = sixteen[j];
}

// A row that CTAs share is summed in memory: in the slot of the CTA that it begins in.
template <class Sum>
struct Sums {
  Sum* slots;          // [CTA][columns_padded]; all zero between launches
  unsigned* arrivals;  // [CTA][slab]; all zero between launches
  std::int64_t columns_padded;
};

// Where C goes. Element (i, j) is at data[i * stride + j], of type `type`.
struct Rows {
  void* data;
  std::int64_t stride;
  ElementType type;
};

// How many rows from its guess a lane looks: near it row by row, then four times as far from lane
// to lane.
__device__ inline std::int64_t probe_distance(int lane) {
  constexpr int kMiddle = 16, kNear = 8;
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

// The same among the rows of a CTA, whose ends are counted from its first nonzero.
__device__ inline int rows_before(const int* ends, int rows, int diagonal) {
  int low = 0, high = min(rows, diagonal);
  while (low < high) {
    const int middle = (low + high) / 2;
    if (ends[middle] + middle < diagonal) low = middle + 1;
    else high = middle;
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
  // In a step each group multiplies a nonzero. Those of rows that groups take alone, and of longer
  // ones, of all warps.
  int steps_alone, steps_of_long;
};

template <int kLanes>
constexpr int kGroupsOfWarp = 32 / kLanes;
__host__ __device__ constexpr int log2(int power_of_two) {
  return power_of_two <= 1 ? 0 : 1 + log2(power_of_two / 2);
}
// Steps in which the groups of a warp add up what each has of a row. Two shuffles with their
// additions take about as long as a nonzero.
template <int kLanes, int kCount>
constexpr int kStepsOfLong = 2 + log2(kGroupsOfWarp<kLanes>) * kCount / 2;
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

// What a lane does with the columns that it holds: kCount of them, from `column` on.
template <class Sum, int kCount, int kLanes>
struct Columns {
  std::int64_t column, n;

  __device__ void store(const Rows& c, std::int64_t row, const Sum (&sums)[kCount]) const {
    if constexpr (std::is_same_v<Sum, double>) store_as<double>(c, row, sums);
    else if (c.type == ElementType::f32) store_as<float>(c, row, sums);
    else if (c.type == ElementType::f16) store_as<__half>(c, row, sums);
    else store_as<__nv_bfloat16>(c, row, sums);
  }

  template <class C>
  __device__ void store_as(const Rows& c, std::int64_t row, const Sum (&sums)[kCount]) const {
    C* const to = static_cast<C*>(c.data) + row * c.stride;
    if constexpr (kCount == 1) {
      *to = from_sum<C>(sums[0]);
    } else if constexpr (kLanes > 1 || kCount == 2) {
      store_streaming(to, column, n, sums, lanes_of_group<kLanes>());
    } else {
#pragma unroll
      for (int j = 0; j < kCount; j += 4)
        if (column + j < n)
          store_four(to + column + j, make_float4(sums[j], sums[j + 1], sums[j + 2], sums[j + 3]));
    }
  }

  // This CTA's part of a row that several CTAs share. The last of them writes C.
  __device__ void add_part(const Sums<Sum>& shared, const Rows& c, const DeviceCsr& a,
                           std::int64_t row, int places, int lane,
                           const Sum (&part)[kCount]) const {
    const std::int64_t owner = (__ldg(a.row_ptr + row) + row) / places;
    const std::int64_t end = (__ldg(a.row_ptr + row + 1) + row) / places;
    Sum sums[kCount == 1 ? kPerVector<Sum> : kCount] = {};
#pragma unroll
    for (int j = 0; j < kCount; ++j) sums[j] = part[j];
    if (!add_in_slot<kLanes>(shared.slots + owner * shared.columns_padded + column - lane * kCount,
                             shared.arrivals + owner * gridDim.y + blockIdx.y,
                             static_cast<int>(end - owner) + 1, lane, column < n, sums))
      return;
    Sum all[kCount];
#pragma unroll
    for (int j = 0; j < kCount; ++j) all[j] = sums[j];
    store(c, row, all);
  }
};

// A nonzero as it is staged in shared memory.
template <class Sum>
struct alignas(2 * sizeof(Sum)) Entry {
  std::uint32_t b_piece;  // where its row of B begins, in pieces
  Sum value;
};

// Bytes of shared memory for the staged part of A: nonzeros or, for a vector, their products, and
// after them the ends of rows. Together they are as many as the places, and one end more.
template <class Sum, int kCount>
constexpr std::size_t staged_bytes(int places) {
  return static_cast<std::size_t>(places + 1) * (kCount == 1 ? sizeof(Sum) : sizeof(Entry<Sum>));
}

// What is staged of A: for a vector products with its elements, otherwise nonzeros.
template <class TB, int kCount>
using Staged = std::conditional_t<kCount == 1, SumOf<TB>, Entry<SumOf<TB>>>;

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
