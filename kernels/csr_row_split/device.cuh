#pragma once
// Device code of csr_row_split (csr_row_split.cu has what it computes, and how).

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "common/empty_rows.cuh"
#include "common/sums.cuh"
#include "csr_row_split/segments.hpp"
#include "ptx/griddepcontrol.cuh"

namespace spmmbench::csr_row_split {

constexpr int kThreads = 128;
// Without this minimum the compiler uses 32 registers and issues the loads one by one. With 8 CTAs
// (64 registers) all kUnroll loads are in flight. With 12 (40 registers) fewer loads are in flight
// in more warps, which is slightly better where rows are short. Values of fp64 take two registers,
// and in fp8 a lane has 16 sums.
template <class TB>
constexpr int kMinBlocksPerSm = std::is_same_v<TB, double> || sizeof(TB) == 1 ? 8 : 12;
constexpr int kUnroll = 8;  // pieces of B in flight per lane; fewer only at a segment's end
constexpr unsigned kFullWarp = 0xFFFFFFFFU;

using row_split::kMostJoined, row_split::Segment, row_split::Slot;

template <class Sum>
struct Workspace {
  const Segment* segments;
  std::int64_t segment_count;
  // With kJoin, rows of four segments come first, then those of two, then those of more.
  std::int64_t fours_end, twos_end;
  const Slot* slots;
  bool release_early;  // groups of cut rows let the next kernel in before they add their sums
  Sum* sums;           // [slot][columns_padded]; all zero between launches
  unsigned* arrivals;  // [slot][slab]; all zero between launches
  std::int64_t columns_padded;
  Clearing empty;  // by the CTAs past the last segment
};

template <class T>
struct CsrEntries {
  const std::int32_t* col_idx;
  const T* values;
  float scale;  // of A and B, in fp8
};

template <std::int64_t kShare>
__host__ __device__ std::int64_t ctas_of(std::int64_t all) {
  return (all + kShare - 1) / kShare;
}

// sums += value * (this lane's pieces of row `col` of B) for kCount nonzeros of the batch that the
// group's lanes hold. The loads come first, all of them, so that they are in flight together.
template <class TB, int kCount, int kLanes, int kPieces>
__device__ void add_rows(std::int32_t my_col, SumOf<TB> my_value, int first,
                         const char* const (&b)[kPieces], std::uint32_t row_bytes,
                         SumOf<TB> (&sums)[kPieces * kPerVector<TB>]) {
  constexpr int kColumns = kPerVector<TB>;  // of a piece
  uint4 raw[kCount][kPieces];
  SumOf<TB> value[kCount];
#pragma unroll
  for (int u = 0; u < kCount; ++u) {
    const auto col = static_cast<std::uint32_t>(__shfl_sync(kFullWarp, my_col, first + u, kLanes));
    value[u] = __shfl_sync(kFullWarp, my_value, first + u, kLanes);
    const std::uint64_t offset = static_cast<std::uint64_t>(col) * row_bytes;
#pragma unroll
    for (int p = 0; p < kPieces; ++p)
      raw[u][p] = __ldca(reinterpret_cast<const uint4*>(b[p] + offset));
  }
#pragma unroll
  for (int u = 0; u < kCount; ++u) {
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      SumOf<TB> x[kColumns];
      unpack(raw[u][p], x, TB{});
#pragma unroll
      for (int j = 0; j < kColumns; ++j) sums[p * kColumns + j] += value[u] * x[j];
    }
  }
}

// What a lane has of each row of B and C: kPieces times 16 bytes of B, kLanes pieces apart.
template <class TB, int kLanes, int kPieces>
struct Columns {
  static constexpr int kPiece = kPerVector<TB>, kAll = kPieces * kPiece;
  static constexpr int kNextPiece = kLanes * kPiece;
  using Sum = SumOf<TB>;

  std::int64_t first, n;

  // In a row of B, from its first column on if the piece lies behind the last one.
  __device__ void find(const TB* row, const char* (&pieces)[kPieces]) const {
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      const std::int64_t at = first + p * kNextPiece;
      pieces[p] = reinterpret_cast<const char*>(row + (at < n ? at : 0));
    }
  }
  template <class TC>
  __device__ void store(TC* row, const Sum (&sums)[kAll]) const {
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      Sum piece[kPiece];
#pragma unroll
      for (int j = 0; j < kPiece; ++j) piece[j] = sums[p * kPiece + j];
      store_streaming(row, first + p * kNextPiece, n, piece, lanes_of_group<kLanes>());
    }
  }
};

// sums += the products of a segment, by its group. `longest`: nonzeros of a segment of the warp.
template <class TB, int kLanes, int kPieces>
__device__ void add_segment(const CsrEntries<TB>& a, const Segment& segment, int longest, int lane,
                            const char* const (&b)[kPieces], std::uint32_t row_bytes,
                            SumOf<TB> (&sums)[kPieces * kPerVector<TB>]) {
  constexpr int kRows = kUnroll / kPieces;  // of B in flight
  static_assert(kLanes % kRows == 0, "a batch of kLanes nonzeros is walked kRows at a time");
  for (int base = 0; base < longest; base += kLanes) {
    // Each lane reads one nonzero of the batch; shuffles hand them round. Past its end a segment
    // repeats its last nonzero with value 0: an `if` around the loads of B would make the compiler
    // issue them one by one.
    std::int32_t my_col = 0;
    SumOf<TB> my_value = 0;
    if (segment.length > 0) {
      const std::int64_t entry = segment.begin + min(base + lane, segment.length - 1);
      my_col = __ldg(a.col_idx + entry);
      if (base + lane < segment.length) my_value = to_sum(load_value(a.values + entry));
      if constexpr (sizeof(TB) == 1) my_value *= a.scale;
    }
    const int count = min(kLanes, longest - base);
    for (int i = 0; i < count; i += kRows) {
      const int left = count - i;
      if (kRows > 4 && left > 4)
        add_rows<TB, kRows, kLanes, kPieces>(my_col, my_value, i, b, row_bytes, sums);
      else if (left > 2) add_rows<TB, 4, kLanes, kPieces>(my_col, my_value, i, b, row_bytes, sums);
      else if (left == 2) add_rows<TB, 2, kLanes, kPieces>(my_col, my_value, i, b, row_bytes, sums);
      else add_rows<TB, 1, kLanes, kPieces>(my_col, my_value, i, b, row_bytes, sums);
    }
  }
}

// Adds up the segments of rows that lie in this CTA, whose threads all call it. True in the groups
// that have the sums of a row or, in rows of more segments, of their own.
template <int kLanes, class Sum, int kColumns>
__device__ bool join_segments(const Workspace<Sum>& work, std::int64_t index,
                              Sum (&sums)[kColumns]) {
  __shared__ Sum parts[kColumns][kThreads];
#pragma unroll
  for (int j = 0; j < kColumns; ++j) parts[j][threadIdx.x] = sums[j];
  __syncthreads();
  const int joined = index < work.fours_end ? kMostJoined : index < work.twos_end ? 2 : 1;
  if (index % joined != 0) return false;
  for (int part = 1; part < joined; ++part)
#pragma unroll
    for (int j = 0; j < kColumns; ++j) sums[j] += parts[j][threadIdx.x + part * kLanes];
  return true;
}

// Takes a group's sums from slot to slot until `target` is a row of C. True in the group that comes
// last in each of them, whose sums then are those of the row.
template <int kLanes, class Sum, int kColumns>
__device__ bool add_in_slots(const Workspace<Sum>& work, int lane, bool has_columns,
                             std::int32_t& target, Sum (&sums)[kColumns]) {
  while (target < 0) {
    const std::int64_t at = ~target;
    const Slot slot = work.slots[at];
    Sum* const all = work.sums + at * work.columns_padded +
                     static_cast<std::int64_t>(blockIdx.y) * kLanes * kColumns;
    if (!add_in_slot<kLanes>(all, work.arrivals + at * gridDim.y + blockIdx.y, slot.parts, lane,
                             has_columns, sums))
      return false;
    target = slot.target;
  }
  return true;
}

// kClears: CTAs past the last segment clear the empty rows of C.
template <class TB, class TC, int kLanes, int kPieces, bool kJoin, bool kClears>
__global__ void __launch_bounds__(kThreads, kMinBlocksPerSm<TB>)
    csr_row_split_kernel(Workspace<SumOf<TB>> work, CsrEntries<TB> a, const TB* __restrict__ b,
                         std::uint32_t row_bytes, TC* __restrict__ c, std::int64_t ldc,
                         std::int64_t n) {
  using Own = Columns<TB, kLanes, kPieces>;
  constexpr int kGroups = kThreads / kLanes;  // of a CTA
  static_assert(kGroups % kMostJoined == 0, "the segments of a row do not lie in two CTAs");
  const std::int64_t first_index = static_cast<std::int64_t>(blockIdx.x) * kGroups;
  if (kClears && first_index >= work.segment_count) {
    const std::int64_t cta = std::int64_t{blockIdx.x} - ctas_of<kGroups>(work.segment_count);
    const std::int64_t first = (cta * gridDim.y + blockIdx.y) * (kThreads / 32);
    return clear_rows(c, ldc, n, work.empty, first + threadIdx.x / 32);
  }
  const int lane = threadIdx.x % kLanes;
  const std::int64_t index = first_index + threadIdx.x / kLanes;
  const Own own{(static_cast<std::int64_t>(blockIdx.y) * kPieces * kLanes + lane) * Own::kPiece, n};
  const char* b_pieces[kPieces];
  own.find(b, b_pieces);

  // Groups past the end run along with length 0, so that the whole warp takes part in the shuffles.
  Segment segment{0, 0, 0};
  if (index < work.segment_count) segment = work.segments[index];
  const int longest = __reduce_max_sync(kFullWarp, segment.length);

  // Until here only data of the plan was read, since the previous launch may still be running.
  ptx::griddepcontrol_wait();

  SumOf<TB> sums[Own::kAll] = {};
  add_segment<TB, kLanes, kPieces>(a, segment, longest, lane, b_pieces, row_bytes, sums);

  // With kJoin the condition would make launches up to 8 % longer.
  if (kJoin || segment.target >= 0 || work.release_early) ptx::griddepcontrol_launch_dependents();
  if constexpr (kJoin)
    if (first_index < work.twos_end && !join_segments<kLanes>(work, index, sums)) return;
  if (index >= work.segment_count) return;
  std::int32_t row = segment.target;
  if (!add_in_slots<kLanes>(work, lane, own.first < n, row, sums)) return;
  own.store(c + row * ldc, sums);
}

}  // namespace spmmbench::csr_row_split
