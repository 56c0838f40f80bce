#pragma once
// The window engine: C = A * B for A in windows, which async_wcsr and rsh share. A window (row
// panel) is 8, 16 or 32 rows of A whose distinct columns are packed and cut in tiles of 16, its
// k-blocks. A feature tile is the 32 to 256 bytes of a row of B, and the columns of C, that one
// warp computes. A warp walks a span of tiles for one feature tile; the 16 rows of B of each tile
// come by cp.async into a ring of kStages stages that belongs to the warp alone, so that the copies
// run ahead across tiles and windows without any barrier between warps:
//
//      col_idx of the next 8 tiles                      registers, or shared memory (kOfBytes)
//      B rows and A of tile i + kStages - 1 .. i + 1     in flight, shared memory
//      B rows and A of tile i                           fragments -> mma
//
//   stage: | 16 rows of B, kRowBytes each, 16-byte chunks swizzled | A: what its format copies |
//
// In fp32 the CUDA cores multiply (window/accumulators_fp32.cuh). Otherwise tensor cores do, and
// the product is C^T = B^T * A^T: mma's m is the features, n the window's rows, k the tile's
// columns, so that a window of 8 rows fills n. Any order of k serves as long as both operands
// follow it: slots 2t, 2t + 1, 2t + 8, 2t + 9 (16-bit), or t and t + 4 of two steps (tf32), stand
// for columns 4t .. 4t + 3, so that a lane's values of A are side by side in a row.
//
// How A is stored is a template parameter, the Operand:
//
//      Input, kWindowRows                        the type of mma's inputs; 8, 16 or 32
//      struct Source                             what a launch is given
//      static constexpr int kStageBytes          of A in a stage, a multiple of 16
//      static constexpr int kLead                1: A of tile i + 1 comes with B of tile i, and is
//                                                loaded before tile i is multiplied; 0: A of tile i
//      Operand(source, span, tiles, lane)        before the predecessor has ended
//      void copy(int i, std::uint32_t to)        starts the copy of the span's tile i, in order
//      Fragment load(std::uint32_t from) const   of a tile whose copy has arrived
//
// window/choice.hpp chooses the windows, window/launch.hpp the launch.

#include <cstdint>

#include "common/arrive_and_sum.cuh"
#include "common/dense_io.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/griddepcontrol.cuh"
#include "window/accumulators.cuh"
#include "window/accumulators_fp32.cuh"
#include "window/row_loader.cuh"
#include "window/stage.cuh"

namespace spmmbench::window {

// Adds this CTA's sums of a split window to those of the other CTAs. True in the warp that comes
// last, which then holds the window's sums.
template <int kSumVectors, class Totals>
__device__ bool add_parts(const Arguments& in, int split_index, const TileSplit& split,
                          int feature_tile, int feature_tiles, unsigned lane, Totals& totals) {
  const auto slot = [&](std::int64_t index) {
    return in.sums + ((index * feature_tiles + feature_tile) * kSumVectors * 32 + lane) * 4;
  };
  const PartialSums partial = {
      .own = slot(in.ordered ? blockIdx.x : split_index),
      .arrivals = in.arrivals + std::int64_t{split_index} * feature_tiles + feature_tile,
      .parts = split.ctas,
      .ordered = in.ordered,
      .first = slot(split.first_cta),
      .slot_floats = std::int64_t{feature_tiles} * kSumVectors * 32 * 4};
  return arrive_and_sum<128>(partial, lane, totals.all());
}

// Tiles of a span, and whether they are of one window that a team shares.
__device__ inline int tiles_of(const TileSpan& span) { return span.tiles & ~TileSpan::kShared; }
__device__ inline bool is_shared(const TileSpan& span) {
  return (span.tiles & TileSpan::kShared) != 0;
}

// Where the windows of a warp's span end, and the rows of C of the one that the warp is in.
template <int kWindowRows>
class SpanWindows {
 public:
  __device__ SpanWindows(const Arguments& in, const TileSpan& span, unsigned lane)
      : in_(in), lane_(lane), window_(span.first_window), row_of_c_(row_of_place()) {
    // A window has a tile at least, so 32 windows cover a span.
    const int tiles = tiles_of(span);
    const std::int32_t end = in.window_ptr[min(window_ + lane + 1, in.windows)] - span.first_tile;
    const bool ends = !is_shared(span) && end > 0 && end <= tiles;
    ends_ = __reduce_or_sync(kFullWarp, ends ? 1U << (end - 1) : 0U);
  }

  // Whether tile i of the span is its window's last.
  __device__ bool end_with(int i) const { return (ends_ >> i & 1U) != 0; }
  // The row of C of place `lane` of the window, -1 for none. Known when the window begins, so that
  // its store does not wait for it.
  __device__ std::int32_t row_of_c() const { return row_of_c_; }
  __device__ void next() {
    ++window_;
    row_of_c_ = row_of_place();
  }

 private:
  __device__ std::int32_t row_of_place() const {
    const unsigned place = static_cast<unsigned>(window_) * kWindowRows + lane_;
    if (lane_ >= kWindowRows || place >= static_cast<unsigned>(in_.places)) return -1;
    return in_.row_ids == nullptr ? static_cast<std::int32_t>(place) : in_.row_ids[place];
  }

  const Arguments& in_;
  unsigned lane_;
  std::int32_t window_;
  std::int32_t row_of_c_;
  unsigned ends_;
};

// The sums of a window that a team shares: those of the other members are added to those of the
// first, through their places in shared memory, part_of(member), and to those of the other CTAs.
// All warps of the CTA call it. True in the warp that then holds the window's sums.
template <int kSumVectors, class PartOf, class Totals>
__device__ bool sums_of_shared(const Arguments& in, const TileSpan& span, int feature_tile,
                               int feature_tiles, PartOf part_of, Totals& sums) {
  const unsigned lane = threadIdx.x;
  const int member = threadIdx.z;
  const TileSplit split = span.split < 0 ? TileSplit{} : in.splits[span.split];
  __syncthreads();
  if (member > 0)
    sums.for_each_four([&](int i, const float(&x)[4]) {
      reinterpret_cast<float4*>(part_of(member))[i * 32 + lane] =
          make_float4(x[0], x[1], x[2], x[3]);
    });
  __syncthreads();
  if (member > 0) return false;
  for (int m = 1; m < static_cast<int>(blockDim.z); ++m) {
    const auto* theirs = reinterpret_cast<const float4*>(part_of(m));
    sums.for_each_four([&](int i, float(&x)[4]) {
      const float4 sum = theirs[i * 32 + lane];
      x[0] += sum.x;
      x[1] += sum.y;
      x[2] += sum.z;
      x[3] += sum.w;
    });
  }
  return span.split < 0 ||
         add_parts<kSumVectors>(in, span.split, split, feature_tile, feature_tiles, lane, sums);
}

// CTAs per SM that the registers must allow: as many as the rings leave room for, up to the point
// where values would be spilled.
template <class Input, int kWindowRows, int kRowBytes>
constexpr int min_ctas_per_sm() {
  if (kInputBytes<Input> == 1) {  // as many sums as with 16-bit rows of twice the bytes
    const int most = kRowBytes == 32 ? 7 : kRowBytes == 64 ? 6 : 5;
    return kWindowRows == 8 ? most : kWindowRows == 16 ? most - 1 : most - 2;
  }
  if (kRowBytes == 32) return kWindowRows == 8 ? 10 : kWindowRows == 16 ? 9 : 5;
  if (kRowBytes == 64) return kWindowRows == 8 ? 9 : kWindowRows == 16 ? 8 : 5;
  if (kRowBytes == 256 || kWindowRows == 32) return 4;
  return kWindowRows == 8 ? 7 : 5;
}

// Stores the sums of the window that the warp is in. `columns`: of C, from its feature on.
template <class C, class Input, bool kOfBytes, class Sums, int kWindowRows>
__device__ __forceinline__ void store_window(const Arguments& in, const Sums& sums,
                                             const SpanWindows<kWindowRows>& windows, int feature,
                                             int columns) {
  struct Row {
    C* c;
    bool exists;
  };
  const auto row_of = [&](unsigned row_of_window) -> Row {
    const std::int32_t row =
        __shfl_sync(kFullWarp, windows.row_of_c(), static_cast<int>(row_of_window));
    // Both factors fit 32 bits, which takes fewer registers: rows are less than 4 GiB apart.
    const std::uint64_t first =
        std::uint64_t{static_cast<std::uint32_t>(row)} * static_cast<std::uint32_t>(in.ldc);
    return {static_cast<C*>(in.c) + first + feature, row >= 0};
  };
  if constexpr (kOfBytes) {
    struct Kept {
      C* c;         // at the lane's first feature
      int columns;  // of C from there on, none without a row
    };
    const auto own = static_cast<int>(sums.first_feature());
    const float scale = in.scale;
    const auto kept_row = [&](unsigned row_of_window) -> Kept {
      const Row row = row_of(row_of_window);
      const C* c = row.c + own;
      ptx::keep_in_register(c);
      return {const_cast<C*>(c), row.exists ? columns - own : 0};
    };
    sums.for_each_vector(kept_row, [&](const Kept& row, int offset, const float4& x) {
      if (offset - own < row.columns)
        store_four(row.c + (offset - own),
                   make_float4(x.x * scale, x.y * scale, x.z * scale, x.w * scale));
    });
  } else {
    sums.for_each_vector(row_of, [&](const Row& row, int offset, const float4& x) {
      if (!row.exists || offset >= columns) return;
      if constexpr (kInputBytes<Input> == 1)
        store_four(row.c + offset,
                   make_float4(x.x * in.scale, x.y * in.scale, x.z * in.scale, x.w * in.scale));
      else store_four(row.c + offset, x);
    });
  }
}

// What copies rows of B for a warp. `columns`: its shared memory for column indices, for fp8.
template <class Input, int kRowBytes, bool kOfBytes>
__device__ __forceinline__ auto make_row_loader(const Arguments& in, const TileSpan& span,
                                                int feature, unsigned lane,
                                                unsigned char* columns) {
  const int tiles = tiles_of(span);
  if constexpr (kOfBytes) {
    const auto own = static_cast<std::uint32_t>(__cvta_generic_to_shared(columns));
    return RowLoaderOfBytes<Input, kRowBytes>(in, span.first_tile, tiles, feature, lane, own);
  } else {
    return RowLoader<Input, kRowBytes>(in, span.first_tile, tiles, feature, lane);
  }
}

// The copies of a warp's tiles into its ring. `rows` copies those of B, and A of tile i + kLead
// comes with B of tile i.
template <class S, int kRowBytes, int kStages, class Rows, class Operand>
struct TileCopies {
  static constexpr int kLead = Operand::kLead;
  static constexpr int kOfA = kTileColumns * kRowBytes;  // in a stage
  Rows& rows;
  Operand& operand;
  int tiles;
  std::uint32_t ring;

  __device__ __forceinline__ std::uint32_t last() const {
    return ring + (kStages - 1) * S::kStageBytes;
  }
  __device__ __forceinline__ std::uint32_t after(std::uint32_t stage) const {
    return stage == last() ? ring : stage + S::kStageBytes;
  }
  // Before the previous launch has ended, which may write B.
  __device__ __forceinline__ void begin() {
    if constexpr (kLead == 1) {
      copy_a(0, last());
      ptx::cp_async_commit_group();
    }
  }
  __device__ __forceinline__ void copy(int i, std::uint32_t stage) {
    if (i < tiles) rows.copy(i, stage);
    copy_a(i + kLead, stage);
    ptx::cp_async_commit_group();
  }

 private:
  __device__ __forceinline__ void copy_a(int i, std::uint32_t stage) {
    if (i < tiles) operand.copy(i, stage + kOfA);
  }
};

// CTA: (32, feature tiles of a CTA, team); grid: (CTAs of the work list, all feature tiles over
// those of a CTA). `shared`: a ring per warp, 128-byte aligned. kOfBytes, for fp8: the columns lie
// in `shared` too, kColumnBytes after each ring, and a lane keeps its pointer into a row of C.
template <class Operand, class C, int kRowBytes, int kStages, bool kOfBytes = false>
__device__ void multiply_spans(const Arguments& in, const typename Operand::Source& a,
                               unsigned char* shared) {
  using S = Shape<Operand, kRowBytes, kStages>;
  constexpr int kWindowRows = Operand::kWindowRows;
  const unsigned lane = threadIdx.x;
  const int member = threadIdx.z;
  const auto feature_tile = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  const auto feature_tiles = static_cast<int>(gridDim.y * blockDim.y);
  const int feature = feature_tile * S::kFeatures;

  const TileSpan span = in.spans[static_cast<std::int64_t>(blockIdx.x) * blockDim.z + member];
  const int tiles = tiles_of(span);
  constexpr int kWarpBytes = S::kRingBytes + (kOfBytes ? kColumnBytes : 0);  // of `shared`
  const auto ring_of = [&](int m) { return shared + (m * blockDim.y + threadIdx.y) * kWarpBytes; };
  auto rows = make_row_loader<typename S::Input, kRowBytes, kOfBytes>(
      in, span, feature, lane, ring_of(member) + S::kRingBytes);
  Operand operand(a, span, tiles, lane);
  SpanWindows<kWindowRows> windows(in, span, lane);

  const auto ring = static_cast<std::uint32_t>(__cvta_generic_to_shared(ring_of(member)));
  TileCopies<S, kRowBytes, kStages, decltype(rows), Operand> copies{rows, operand, tiles, ring};
  copies.begin();
  ptx::griddepcontrol_wait();
  if (in.release_early) ptx::griddepcontrol_launch_dependents();
  if constexpr (kOfBytes) rows.await_columns();
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) copies.copy(s, ring + s * S::kStageBytes);

  Accumulators<typename S::Input, kWindowRows, kRowBytes> sums(lane);
  const auto columns = static_cast<int>(min(in.n - feature, std::int64_t{S::kFeatures}));
  const auto store = [&] {
    store_window<C, typename S::Input, kOfBytes>(in, sums, windows, feature, columns);
  };

  constexpr int kOfA = decltype(copies)::kOfA;
  std::uint32_t full = ring, free = copies.last();
  Fragment<typename S::Input, kWindowRows> fragment;
  if constexpr (Operand::kLead == 1) {
    ptx::cp_async_wait_group<kStages - 1>();
    __syncwarp();
    if (tiles > 0) fragment = operand.load(free + kOfA);
  }
  for (int i = 0; i < tiles; ++i) {
    ptx::cp_async_wait_group<kStages - 2>();
    __syncwarp();  // the other lanes' copies too; and all are done with the stage filled next
    copies.copy(i + kStages - 1, free);
    if constexpr (kIsFp32<typename S::Input>) {
      sums.add(full, full + kOfA);
    } else if constexpr (Operand::kLead == 0) {
      sums.add(full, operand.load(full + kOfA));
    } else {
      Fragment<typename S::Input, kWindowRows> next = fragment;
      if (i + 1 < tiles) next = operand.load(full + kOfA);
      sums.add(full, fragment);
      fragment = next;
    }
    full = copies.after(full);
    free = copies.after(free);
    if (windows.end_with(i)) {
      store();
      sums.clear();
      windows.next();
    }
  }
  ptx::griddepcontrol_launch_dependents();
  if (!is_shared(span)) return;
  ptx::cp_async_wait_group<0>();
  if (sums_of_shared<S::kSumVectors>(in, span, feature_tile, feature_tiles, ring_of, sums)) store();
}

}  // namespace spmmbench::window
