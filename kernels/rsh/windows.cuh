#pragma once
// Windows on the tensor cores. A warp takes the columns, bitmaps and values of its span to shared
// memory, then walks the span's tiles for one strip of features:
//
//   rows of B of tiles i + 1 .. i + kStages - 1      in flight, into a ring in shared memory that
//                                                    belongs to the warp: no barrier between warps
//   tile i                                           bitmaps -> values, ldmatrix, mma
//
// A span is either several whole windows, stored as each ends, or this warp's share of one window
// that the warps of the block, and other blocks where it is longer still, add up.

#include "common/async_copy.cuh"
#include "common/reduce_add.cuh"
#include "rsh/tile.cuh"

namespace spmmbench::rsh {

// The windows of a span, one per lane.
struct SpanWindows {
  std::int32_t row, next_row;  // first rows of this and the next window
  std::int32_t column, column_end;
  std::uint64_t rows;  // bit i: row + i stands in the window
  unsigned ends;       // bit i: tile i is its window's last; the same in all lanes
  unsigned odd;        // bit i: tile i has one group of columns only; the same in all lanes

  __device__ SpanWindows(const Arguments& in, std::int32_t first, int lane) {
    const auto load = [&](std::int32_t w) {
      return __ldg(reinterpret_cast<const int4*>(in.windows) + min(w, in.window_count));
    };
    const int4 here = load(first + lane), next = load(first + lane + 1);
    row = here.x;
    next_row = next.x;
    column = here.z;
    column_end = next.z;
  }

  // The rest, which the first copies do not wait for. `tiles` of the span; a shared span has
  // (a part of) the only window `first`.
  __device__ void complete(const Arguments& in, const SpanRange& range, int tiles, bool is_shared,
                           int lane) {
    const std::uint64_t* const word = in.row_bits + row / 64;
    rows = __ldg(word) >> row % 64;
    if (row % 64 != 0) rows |= __ldg(word + 1) << (64 - row % 64);
    if (next_row - row < 64) rows &= (std::uint64_t{1} << (next_row - row)) - 1;

    const auto last_is_odd = [](std::int32_t columns) {
      return columns > 0 && (columns - 1) % kTileColumns < RsTile::kGroupColumns;
    };
    if (is_shared) {
      ends = 0;
      odd = last_is_odd(range.column_end - range.column) ? 1U << (tiles - 1) : 0U;
      return;
    }
    const std::int32_t columns = column_end - column;
    int end = (columns + kTileColumns - 1) / kTileColumns;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int before = __shfl_up_sync(kFullWarp, end, step);
      if (lane >= step) end += before;
    }
    const unsigned bit = columns > 0 && end <= tiles ? 1U << (end - 1) : 0U;
    ends = __reduce_or_sync(kFullWarp, bit);
    odd = __reduce_or_sync(kFullWarp, last_is_odd(columns) ? bit : 0U);
  }

  // Row of A at place i of window w of the span; -1 past the window's last row. `i` may differ
  // between lanes, `w` may not.
  __device__ std::int32_t row_at(int w, int i, int window_rows) const {
    const std::uint64_t set = __shfl_sync(kFullWarp, rows, w);
    const std::int32_t first = __shfl_sync(kFullWarp, row, w);
    if (i >= min(__popcll(set), window_rows)) return -1;
    std::uint64_t rest = set;
    const std::uint64_t dense = (std::uint64_t{2} << i) - 1;
    if ((set & dense) == dense) return first + i;  // no row is left out before it
#pragma unroll 1
    for (int skip = 0; skip < i; ++skip) rest &= rest - 1;
    return first + __ffsll(static_cast<long long>(rest)) - 1;
  }
};

// Copies elements [begin, end) to shared memory in pieces of 16 bytes; `from` is 16-byte aligned
// and padded to 16 bytes. Returns the address of element `begin`.
template <int kBytes>
__device__ inline std::uint32_t stage_array(std::uint32_t to, const void* from, std::uint32_t begin,
                                            std::uint32_t end, int lane) {
  constexpr std::uint32_t kPerPiece = 16 / kBytes;
  const std::uint32_t first = begin / kPerPiece, pieces = (end + kPerPiece - 1) / kPerPiece - first;
  for (std::uint32_t i = lane; i < pieces; i += 32)
    copy_async_cached<16>(to + i * 16, static_cast<const uint4*>(from) + first + i);
  return to + begin % kPerPiece * kBytes;
}

// The rows of B of the span's tiles, in order. In every stage a lane copies the same chunk of some
// rows.
template <class Input, int kRowBytes>
class Loader {
  static constexpr int kChunks = kRowBytes / 16;
  static constexpr int kRowsPerCopy = 32 / kChunks;

 public:
  // `columns`: the span's columns in shared memory, where they may still be arriving.
  __device__ Loader(const Arguments& in, const SpanRange& range, const SpanWindows& windows,
                    bool is_shared, const std::int32_t* columns, std::int64_t feature, int lane)
      : global_(in.col_id + range.column + lane / kChunks),
        columns_(columns + lane / kChunks),
        first_(range.column),
        end_(is_shared ? range.column_end - range.column
                       : __shfl_sync(kFullWarp, windows.column_end, 0) - range.column),
        row_bytes_(in.b_row_bytes),
        row_(lane / kChunks),
        to_(chunk_at(lane / kChunks, lane % kChunks, kRowBytes)),
        inside_(feature + lane % kChunks * (16 / kInputBytes<Input>) < in.n),
        b_(static_cast<const char*>(in.b) + feature * kInputBytes<Input> + lane % kChunks * 16) {}

  // The next tile; the first ones take their columns from global memory.
  template <bool kFirst>
  __device__ void copy_tile(const SpanWindows& windows, std::uint32_t stage) {
    constexpr int kCopies = kTileColumns / kRowsPerCopy;
    std::int32_t k[kCopies];
    const int left = inside_ ? end_ - at_ - row_ : 0;
#pragma unroll
    for (int j = 0; j < kCopies; ++j) {
      const int column = at_ + j * kRowsPerCopy;
      if constexpr (kFirst) k[j] = j * kRowsPerCopy < left ? __ldg(global_ + column) : 0;
      else k[j] = columns_[column];
    }
#pragma unroll
    for (int j = 0; j < kCopies; ++j) {
      // Row row_ + j * kRowsPerCopy: 512 bytes further each time, its chunk swizzled by that much.
      const std::uint32_t to = (to_ ^ j * kRowsPerCopy % 8 * 16) + j * 512;
      copy_async(stage + to, b_ + std::uint64_t{static_cast<std::uint32_t>(k[j])} * row_bytes_,
                 j * kRowsPerCopy < left);
    }
    at_ += kTileColumns;
    if (at_ >= end_) {  // the next tile begins the next window
      at_ = end_;
      end_ = __shfl_sync(kFullWarp, windows.column_end, ++window_ % 32) - first_;
    }
  }

 private:
  const std::int32_t* global_;
  const std::int32_t* columns_;
  std::int32_t first_;
  int at_ = 0, end_;
  int window_ = 0;
  std::uint32_t row_bytes_;
  int row_;
  std::uint32_t to_;
  bool inside_;
  const char* b_;
};

// Adds up the parts of a split window. True in the warp that arrives last, whose sums are then the
// whole window's. kAtomic adds into one set of sums, in any order; else every part has its own and
// they are added in the order of the parts, whoever is last: the result does not vary.
template <bool kAtomic, int kQuads, class Totals>
__device__ bool combine_parts(const Arguments& in, int part_index, std::int64_t strip,
                              std::int64_t strips, int lane, Totals& totals) {
  const RsPart part = in.parts[part_index];
  const auto at = [&](std::int64_t index) {
    return in.sums + (index * strips + strip) * kQuads * 32 + lane;
  };
  totals.for_each_quad([&](int i, float(&x)[4]) {
    const float4 sum = make_float4(x[0], x[1], x[2], x[3]);
    if constexpr (kAtomic) reduce_add(reinterpret_cast<float*>(at(part.first) + i * 32), sum);
    else __stcg(at(part_index) + i * 32, sum);
  });
  __threadfence();  // the sums are visible before the arrival is counted
  __syncwarp();
  unsigned before = 0;
  unsigned* const arrivals = in.arrivals + part.first * strips + strip;
  if (lane == 0) before = atomicAdd(arrivals, 1U);
  if (__shfl_sync(kFullWarp, before, 0) != static_cast<unsigned>(part.count) - 1U) return false;
  if (lane == 0) *arrivals = 0;
  __threadfence();  // and the others' sums are read after their arrivals
  totals.clear();
#pragma unroll 1
  for (int p = 0; p < (kAtomic ? 1 : part.count); ++p)
    totals.for_each_quad([&](int i, float(&x)[4]) {
      float4* const from = at(std::int64_t{part.first} + p) + i * 32;
      const float4 sum = __ldcg(from);
      if constexpr (kAtomic) *from = make_float4(0, 0, 0, 0);
      x[0] += sum.x;
      x[1] += sum.y;
      x[2] += sum.z;
      x[3] += sum.w;
    });
  return true;
}

template <class Input, int kHeight, int kRowBytes, int kStages, bool kAtomic>
__device__ void multiply_windows(const Arguments& in, unsigned char* shared) {
  using S = Shape<Input, kHeight, kRowBytes, kStages>;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int team = blockDim.x / 32 / in.strips, member = warp / in.strips;
  const std::int64_t strip = std::int64_t{blockIdx.y} * in.strips + warp % in.strips;
  const std::int64_t strips = std::int64_t{gridDim.y} * in.strips;
  const std::int64_t feature = strip * S::kFeatures;

  const std::int64_t span_index = std::int64_t{blockIdx.x} * team + member;
  const RsSpan span = in.spans[span_index];
  const SpanRange range = in.ranges[span_index];
  const bool is_shared = (span.tiles & RsSpan::kShared) != 0;
  const int tiles = span.tiles & ~RsSpan::kShared;
  SpanWindows windows(in, span.first_window, lane);

  // The rings of all warps, then the columns, bitmaps and values of each.
  const auto ring_of = [&](int w) { return shared + w * S::kRingBytes; };
  unsigned char* const mine =
      ring_of(blockDim.x / 32) + warp * (S::kColumnBytes + S::kBitmapBytes + in.value_bytes);
  const auto address = [](const void* x) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(x));
  };
  const auto pointer = [&](std::uint32_t to) { return mine + (to - address(mine)); };
  const std::uint32_t columns =
      stage_array<4>(address(mine), in.col_id, range.column, range.column_end, lane);
  const std::uint32_t bits_at =
      stage_array<8>(address(mine) + S::kColumnBytes, in.bitmap, range.group * kHeight,
                     range.group_end * kHeight, lane);
  const std::uint32_t values_at =
      stage_array<kInputBytes<Input>>(address(mine) + S::kColumnBytes + S::kBitmapBytes, in.values,
                                      range.value, range.value_end, lane);
  commit_copies();
  Loader<Input, kRowBytes> loader(in, range, windows, is_shared,
                                  reinterpret_cast<const std::int32_t*>(pointer(columns)), feature,
                                  lane);
  const auto* bits = reinterpret_cast<const uint2*>(pointer(bits_at));
  const auto* values = reinterpret_cast<const Stored<Input>*>(pointer(values_at));
  wait_for_predecessor();
  release_successor();
  const std::uint32_t ring = address(ring_of(warp));
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < tiles) loader.template copy_tile<true>(windows, ring + s * S::kStageBytes);
    commit_copies();
  }
  windows.complete(in, range, tiles, is_shared, lane);

  constexpr int kRowsPerLane = kIsTf32<Input> ? 2 : 1;  // of a block
  using Totals = Sums<Input, kHeight, kRowBytes>;
  Totals sums;
  sums.clear();
  std::int32_t row[kHeight][kRowsPerLane];  // of C; -1 where the window has fewer
  int window = 0;
  const auto find_rows = [&] {
#pragma unroll
    for (int h = 0; h < kHeight; ++h)
#pragma unroll
      for (int r = 0; r < kRowsPerLane; ++r) {
        row[h][r] = windows.row_at(window, h * 8 + Totals::block_row(lane, r),
                                   kHeight * RsTile::kBlockRows);
        if (row[h][r] >= 0 && in.row_ids != nullptr) row[h][r] = __ldg(in.row_ids + row[h][r]);
      }
  };
  const auto store = [&] {
    sums.for_each_vector(lane, [&](int h, int r, int offset, float4 x) {
      if (row[h][r] >= 0 && feature + offset < in.n)
        __stcs(reinterpret_cast<float4*>(in.c + row[h][r] * in.ldc + feature + offset), x);
    });
  };

  find_rows();
  const std::uint32_t read_at = Totals::read_at(lane);
  std::uint32_t full = ring, empty = ring + (kStages - 1) * S::kStageBytes;
  const auto step = [&](std::uint32_t& stage) {
    stage = stage == ring + (kStages - 1) * S::kStageBytes ? ring : stage + S::kStageBytes;
  };
#pragma unroll 1
  for (int i = 0; i < tiles; ++i) {
    wait_copies<kStages - 2>();
    __syncwarp();  // the other lanes' copies too; and all are done with the stage filled next
    if (i + kStages - 1 < tiles) loader.template copy_tile<false>(windows, empty);
    commit_copies();
    Fragment<Input, kHeight> a;
    const bool one_group = (windows.odd >> i & 1U) != 0;
    decode<Input, kHeight>(bits, one_group, values, lane, a);
    bits += one_group ? kHeight : 2 * kHeight;
    sums.add(a, full, read_at);
    step(full);
    step(empty);
    if ((windows.ends >> i & 1U) != 0) {
      store();
      sums.clear();
      ++window;
      if (i + 1 < tiles) find_rows();
    }
  }
  if (!is_shared) return;

  // One window for the whole team: the first member adds the others' sums to its own.
  wait_copies<0>();
  __syncthreads();
  if (member > 0)
    sums.for_each_quad([&](int i, float(&x)[4]) {
      reinterpret_cast<float4*>(ring_of(warp))[i * 32 + lane] = make_float4(x[0], x[1], x[2], x[3]);
    });
  __syncthreads();
  if (member > 0) return;
#pragma unroll 1
  for (int m = 1; m < team; ++m) {
    const auto* theirs = reinterpret_cast<const float4*>(ring_of(m * in.strips + warp));
    sums.for_each_quad([&](int i, float(&x)[4]) {
      const float4 sum = theirs[i * 32 + lane];
      x[0] += sum.x;
      x[1] += sum.y;
      x[2] += sum.z;
      x[3] += sum.w;
    });
  }
  if (span.part < 0 || combine_parts<kAtomic, S::kQuads>(in, span.part, strip, strips, lane, sums))
    store();
}

}  // namespace spmmbench::rsh
