#pragma once
// The device code of jagged_slices: one warp per slice (jagged_slices/format.hpp).
//
// A row of B is kLanesPerRow pieces of kColumns columns, one lane's load each. So a warp of 32
// lanes has kPlaces = 32 / kLanesPerRow places, the lanes of a place side by side:
//
//     lane     0 .. L-1    L .. 2L-1    ...         L = kLanesPerRow
//     place       0            1        ...         takes one entry of A in every step
//     piece    0 .. L-1    0 .. L-1     ...         of the row of B that the entry names
//
// A place adds up its entries' products in registers, then the places of one row exchange their
// sums.

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/empty_rows.cuh"
#include "common/sums.cuh"
#include "gpu/element.cuh"
#include "jagged_slices/format.hpp"
#include "ptx/griddepcontrol.cuh"

namespace spmmbench::jagged {

constexpr int kThreads = 128;
constexpr unsigned kAllLanes = 0xFFFFFFFFU;

using Slice = JaggedSlices::Slice;
using LongRow = JaggedSlices::LongRow;
constexpr int kTeam = JaggedShape::kTeam;
static_assert(kTeam == kThreads / 32, "a team is the warps of a block");

// The plan's arrays. All but `partial_sums` and `arrivals` are only read.
template <class Sum>
struct Arguments {
  const Slice* slices;
  std::uint32_t slice_count;
  const std::uint16_t* row_lengths;
  const std::int32_t* row_ids;
  const std::int32_t* part_of;
  const LongRow* long_rows;
  const std::int32_t* col_idx;        // of slices that are not packed
  const void* values;                 // likewise
  const std::uint32_t* packed;        // of slices that are
  const std::int32_t* first_columns;  // [slice], in 16 bits
  Sum* partial_sums;                  // [part][kLanesPerRow * kColumns]
  unsigned* arrivals;                 // [long row], all zero between launches
  // A CTA lets the next launch in when it starts, not once the launch before has ended. CTAs of the
  // next launch then read their slices.
  bool lets_next_in_at_once;
  Clearing empty;  // by the CTAs from this one on:
  unsigned clearing_from;
};

// Rows of B and C begin `stride` elements after one another; `columns` of them count.
struct Dense {
  const void* b;
  std::uint32_t b_row_bytes;
  void* c;
  std::int64_t c_stride;
  int columns;
  float scale;  // of A and B, in fp8
};

// kColumns elements of a row of B as one load.
template <int kBytes>
using Raw = std::conditional_t<
    kBytes == 16, uint4,
    std::conditional_t<
        kBytes == 8, uint2,
        std::conditional_t<kBytes == 4, std::uint32_t,
                           std::conditional_t<kBytes == 2, std::uint16_t, std::uint8_t>>>>;

// sums += value * piece
template <class TB, int kColumns>
__device__ void multiply_add(SumOf<TB> (&sums)[kColumns], SumOf<TB> value,
                             const Raw<kColumns * sizeof(TB)>& piece) {
  if constexpr (kColumns == 1) {
    TB x;
    std::memcpy(&x, &piece, sizeof(x));
    sums[0] += value * to_sum(x);
  } else {  // 16 bytes, or the first of them
    uint4 raw{};
    std::memcpy(&raw, &piece, sizeof(piece));
    SumOf<TB> x[kPerVector<TB>];
    unpack(raw, x, TB{});
#pragma unroll
    for (int i = 0; i < kColumns; ++i) sums[i] += value * x[i];
  }
}

// Where a slice's entries lie: columns and values apart, or packed.
template <class TB>
struct Entries {
  const std::int32_t* col_idx;
  const TB* values;

  __device__ void read(std::uint32_t i, std::uint32_t& col, SumOf<TB>& value) const {
    col = static_cast<std::uint32_t>(__ldg(col_idx + i));
    value = to_sum(load_value(values + i));
  }
};
template <class TB>
struct Packed {
  const std::uint32_t* entries;
  std::uint32_t first_column;

  __device__ void read(std::uint32_t i, std::uint32_t& col, float& value) const {
    const std::uint32_t entry = __ldg(entries + i);
    const auto bits = static_cast<Raw<sizeof(TB)>>(entry);
    TB x;
    std::memcpy(&x, &bits, sizeof(x));
    col = first_column + (entry >> kPackedValueBits<TB>);
    value = to_float(x);
  }
};

// One lane's part in its slice.
template <class TB, int kColumns, int kLanesPerRow>
class Walk {
  using Piece = Raw<kColumns * sizeof(TB)>;

 public:
  // `length`: entries of this lane's place. `lanes_below`: the lanes of the places before it.
  __device__ Walk(int length, unsigned lanes_below, const char* b_piece, std::uint32_t b_row_bytes)
      : length_(length), lanes_below_(lanes_below), b_piece_(b_piece), b_row_bytes_(b_row_bytes) {}

  // All steps, kUnroll at a time.
  template <int kUnroll, class Source>
  __device__ void take(const Source& a, int steps) {
    int step = 0;
    for (; step + kUnroll <= steps; step += kUnroll) take_steps<kUnroll>(a, step);
    const int left = steps - step;
    if (kUnroll > 4 && left > 4) take_steps<kUnroll>(a, step);
    else if (left > 2) take_steps<4>(a, step);
    else if (left == 2) take_steps<2>(a, step);
    else if (left == 1) take_steps<1>(a, step);
  }

  SumOf<TB> sums[kColumns] = {};

 private:
  // The loads of A come first, then those of B, so that they are in flight together. Where a place
  // has no entry left it loads its slice's first one and leaves it.
  template <int kSteps, class Source>
  __device__ void take_steps(const Source& a, int step) {
    std::uint32_t col[kSteps];
    SumOf<TB> value[kSteps];
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const bool takes = step + i < length_;
      const unsigned lanes = __ballot_sync(kAllLanes, takes);
      a.read(takes ? taken_ + __popc(lanes & lanes_below_) / kLanesPerRow : 0, col[i], value[i]);
      taken_ += __popc(lanes) / kLanesPerRow;
    }
    if (step == 0) begin_b();
    Piece piece[kSteps];
#pragma unroll
    for (int i = 0; i < kSteps; ++i)
      piece[i] = __ldca(reinterpret_cast<const Piece*>(
          b_piece_ + static_cast<std::uint64_t>(col[i]) * b_row_bytes_));
#pragma unroll
    for (int i = 0; i < kSteps; ++i)
      if (step + i < length_) multiply_add<TB, kColumns>(sums, value[i], piece[i]);
  }

  // Before it only what the plan prepared was read.
  static __device__ void begin_b() {
    ptx::griddepcontrol_wait();
    ptx::griddepcontrol_launch_dependents();
  }

  int length_;
  unsigned lanes_below_;
  const char* b_piece_;
  std::uint32_t b_row_bytes_;
  std::uint32_t taken_ = 0;  // entries of the slice before the next step
};

// Adds up the sums of `places` neighbouring places (a power of two); all of them get the total.
template <int kLanesPerRow, class Sum, int kColumns>
__device__ void add_places(Sum (&sums)[kColumns], int places) {
  for (int lanes = places * kLanesPerRow / 2; lanes >= kLanesPerRow; lanes /= 2)
#pragma unroll
    for (int i = 0; i < kColumns; ++i) sums[i] += __shfl_xor_sync(kAllLanes, sums[i], lanes);
}

// Adds the sums of a team's warps. True in the first warp, which then holds the total.
template <int kLanesPerRow, class Sum, int kColumns>
__device__ bool add_team(Sum (&sums)[kColumns]) {
  __shared__ Sum of_warp[kTeam][kLanesPerRow * kColumns];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  if (lane < kLanesPerRow)
#pragma unroll
    for (int i = 0; i < kColumns; ++i) of_warp[warp][lane * kColumns + i] = sums[i];
  __syncthreads();
  if (warp > 0) return false;
#pragma unroll
  for (int i = 0; i < kColumns; ++i) {
    const int at = lane % kLanesPerRow * kColumns + i;
    sums[i] = 0;
#pragma unroll
    for (int w = 0; w < kTeam; ++w) sums[i] += of_warp[w][at];
  }
  return true;
}

// Leaves the sums of a part in the workspace. True in the warp that comes last, which then holds
// the sums of the whole row, added in an order that does not depend on who is last: the places take
// parts in turn. arrive_and_sum is for sums of which every lane has its own.
template <int kLanesPerRow, class Sum, int kColumns>
__device__ bool add_parts(const Arguments<Sum>& in, int part, int long_row, const LongRow& row,
                          Sum (&sums)[kColumns]) {
  constexpr int kPlaces = 32 / kLanesPerRow;
  constexpr int kRow = kColumns * kLanesPerRow;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int place = lane / kLanesPerRow, column = lane % kLanesPerRow * kColumns;
  Sum* slots = in.partial_sums + column;
  if (place == 0) store_sums(slots + static_cast<std::int64_t>(part) * kRow, sums);
  if (!arrives_last(in.arrivals + long_row, row.parts, lane)) return false;

#pragma unroll
  for (int i = 0; i < kColumns; ++i) sums[i] = 0;
  for (int p = place; p < row.parts; p += kPlaces)
    add_sums(slots + static_cast<std::int64_t>(row.first_part + p) * kRow, sums);
  add_places<kLanesPerRow>(sums, kPlaces);
  return true;
}

// Writes the rows of a slice, -1 for none, from the sums that all places of a row hold.
template <class TC, int kColumns, int kLanesPerRow, class Sum>
__device__ void store_rows(const Dense& dense, std::int32_t row, int places, int place_of_row,
                           const Sum (&sums)[kColumns]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int column = lane % kLanesPerRow * kColumns;
  const auto at = [&](std::int32_t r) { return static_cast<TC*>(dense.c) + r * dense.c_stride; };
  const auto store = [&](std::int32_t r, int first, auto four) {  // sums of fp32
    if (r >= 0 && first < dense.columns) store_four(at(r) + first, four);
  };
  if constexpr (kColumns == 1) {
    if (row >= 0 && place_of_row == 0) __stcs(at(row), from_sum<TC>(sums[0]));
  } else if constexpr (kColumns == 2) {
    if (row >= 0 && place_of_row == 0)
      store_streaming(at(row), column, dense.columns, sums, kAllLanes);
  } else if constexpr (kColumns == 4) {
    if (place_of_row == 0) store(row, column, make_float4(sums[0], sums[1], sums[2], sums[3]));
  } else {
    // Both halves of the eight columns in one instruction: two of 16 bytes would each fill half of
    // a 32-byte sector, and a half costs the L2 cache as much as a whole.
    const float4 low = make_float4(sums[0], sums[1], sums[2], sums[3]);
    const float4 high = make_float4(sums[4], sums[5], sums[6], sums[7]);
    if (places >= 2) {
      if (place_of_row < 2) store(row, column + place_of_row * 4, place_of_row == 0 ? low : high);
      return;
    }
    // The lanes of two rows trade halves: both store the first one's row, then the second one's.
    const bool second = lane / kLanesPerRow % 2 == 1;
    const float4 give = second ? low : high;
    const float4 got = make_float4(__shfl_xor_sync(kAllLanes, give.x, kLanesPerRow),
                                   __shfl_xor_sync(kAllLanes, give.y, kLanesPerRow),
                                   __shfl_xor_sync(kAllLanes, give.z, kLanesPerRow),
                                   __shfl_xor_sync(kAllLanes, give.w, kLanesPerRow));
    const std::int32_t other = __shfl_xor_sync(kAllLanes, row, kLanesPerRow);
    store(second ? other : row, column + (second ? 4 : 0), second ? got : low);
    store(second ? row : other, column + (second ? 4 : 0), second ? high : got);
  }
}

// kUnroll: steps whose loads are in flight together.
template <class TB, class TC, int kColumns, int kLanesPerRow, int kUnroll, int kMinBlocksPerSm>
__global__ void __launch_bounds__(kThreads, kMinBlocksPerSm)
    multiply(const __grid_constant__ Arguments<SumOf<TB>> in, const __grid_constant__ Dense dense) {
  const std::uint32_t index = blockIdx.x * (kThreads / 32) + threadIdx.x / 32;
  if (in.lets_next_in_at_once) ptx::griddepcontrol_launch_dependents();
  if (blockIdx.x >= in.clearing_from)
    return clear_rows(static_cast<TC*>(dense.c), dense.c_stride, dense.columns, in.empty,
                      index - in.clearing_from * (kThreads / 32));
  if (index >= in.slice_count) return;
  const Slice slice = in.slices[index];
  const int log2_places = static_cast<int>(slice.log2_places);
  const int places = 1 << log2_places;  // of a row
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int place = lane / kLanesPerRow;
  const int place_of_row = place & (places - 1), row_of_slice = place >> log2_places;
  const int row_length = in.row_lengths[slice.first_row + row_of_slice];
  std::int32_t row = -1;  // of C; of a part, of `long_rows`
  if (slice.target >= 0) row = slice.target + row_of_slice;
  else if (slice.target == Slice::kListed) row = in.row_ids[slice.first_row + row_of_slice];
  else row = in.part_of[slice.part()];

  const int column = lane % kLanesPerRow * kColumns;
  const char* b_piece =
      static_cast<const char*>(dense.b) + (column < dense.columns ? column * sizeof(TB) : 0);
  Walk<TB, kColumns, kLanesPerRow> walk((row_length - place_of_row + places - 1) >> log2_places,
                                        (1U << (place * kLanesPerRow)) - 1U, b_piece,
                                        dense.b_row_bytes);
  const int steps = static_cast<int>(slice.steps);
  const std::uint64_t first = slice.first_entry;
  // In 16 bits packed entries halve the bytes that a product with a vector reads; next to wider
  // rows of B they would save little. In 8 bits they save a load of each.
  if constexpr (sizeof(TB) == 1 || (sizeof(TB) == 2 && kColumns == 1)) {
    if (slice.packed != 0) {
      std::uint32_t first_column = 0;
      if constexpr (sizeof(TB) == 2) first_column = in.first_columns[index];
      walk.template take<kUnroll>(Packed<TB>{in.packed + first, first_column}, steps);
    } else {
      walk.template take<kUnroll>(
          Entries<TB>{in.col_idx + first, static_cast<const TB*>(in.values) + first}, steps);
    }
  } else {
    walk.template take<kUnroll>(
        Entries<TB>{in.col_idx + first, static_cast<const TB*>(in.values) + first}, steps);
  }
  if (steps == 0) ptx::griddepcontrol_wait();

  auto& sums = walk.sums;
  add_places<kLanesPerRow>(sums, places);
  if (slice.target < Slice::kListed) {
    if (!add_team<kLanesPerRow>(sums)) return;
    const LongRow long_row = in.long_rows[row];
    if (long_row.parts > 1 && !add_parts<kLanesPerRow>(in, slice.part(), row, long_row, sums))
      return;
    row = long_row.row;
  }
  if constexpr (sizeof(TB) == 1)
#pragma unroll
    for (float& sum : sums) sum *= dense.scale;
  store_rows<TC, kColumns, kLanesPerRow>(dense, row, places, place_of_row, sums);
}

}  // namespace spmmbench::jagged
