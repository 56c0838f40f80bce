#pragma once
// C = A * B for A in windows of rows whose distinct columns are packed and cut in tiles of 16. A
// warp walks a span of tiles for one strip of features. A tile's 16 rows of B come by cp.async into
// a ring of kStages stages that belongs to the warp alone, so that the copies run ahead across
// tiles and windows without any barrier between warps:
//
//      col_idx of tile i + kStages            registers
//      B rows and A of tile i + kStages - 1 .. i + 1     in flight, shared memory
//      B rows and A of tile i                 fragments -> mma
//
//   stage: | 16 rows of B, kRowBytes each, 16-byte chunks swizzled | A: what its format copies |
//
// The product is C^T = B^T * A^T: mma's m is the features, n the window's rows, k the tile's
// columns, so that a window of 8 rows fills n. Any order of k serves as long as both operands
// follow it: slots 2t, 2t + 1, 2t + 8, 2t + 9 (16-bit), or t and t + 4 of two steps (tf32), stand
// for columns 4t .. 4t + 3, so that a lane's values of A are side by side in a row.
//
// How A is stored is a template parameter, the Operand:
//
//      struct Source                             what a launch is given
//      static constexpr int kStageBytes          of A in a stage, a multiple of 16
//      static constexpr int kLead                1: A of tile i + 1 comes with B of tile i, and is
//                                                loaded before tile i is multiplied; 0: A of tile i
//      Operand(source, span, tiles, lane)        before the predecessor has ended
//      void copy(int i, std::uint32_t to)        starts the copy of the span's tile i, in order
//      Fragment load(std::uint32_t from) const   of a tile whose copy has arrived

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "common/async_copy.cuh"
#include "common/mma.cuh"
#include "common/reduce_add.cuh"
#include "format/tile_work.hpp"

namespace spmmbench::tiles {

constexpr int kTileColumns = 16;
constexpr unsigned kFullWarp = 0xFFFFFFFFU;

struct Arguments {
  const TileSpan* spans;
  const TileSplit* splits;
  const std::int32_t* window_ptr;  // tiles before every window, and in all
  const std::int32_t* col_idx;     // 16 per tile; -1 fills up a window's last
  const std::int32_t* row_ids;  // place -> row of C, -1 for none; null when the places are the rows
  std::int32_t places;
  std::int32_t windows;
  const void* b;
  std::uint32_t b_row_bytes;
  float* c;
  std::int64_t ldc;
  std::int64_t n;
  bool ordered;               // how blocks add up a split window, see combine
  float* sums;                // of split windows: [slot][strip][sum][lane][4]
  unsigned* arrivals;         // [split][strip]; all zero between launches
  bool release_early = true;  // see tile_launch.hpp
};

template <class Input>
constexpr int kInputBytes = 2;
template <>
constexpr int kInputBytes<mma::Tf32> = 4;

template <class Operand, int kRowBytes, int kStages>
struct Shape {
  using Input = typename Operand::Input;
  static constexpr int kFeatures = kRowBytes / kInputBytes<Input>;  // of a strip
  // A multiple of 128, so that chunks are addressed by xor.
  static constexpr int kStageBytes =
      (kTileColumns * kRowBytes + Operand::kStageBytes + 127) / 128 * 128;
  static constexpr int kSums = Operand::kWindowRows * kFeatures / 128;  // float4 per lane
  // Of a warp; its sums pass through its ring when windows are shared.
  static constexpr int kRingBytes = std::max(kStages * kStageBytes, kSums * 512);
  static_assert(kRingBytes % 128 == 0);
  static_assert(kRowBytes == 128 || kRowBytes == 256, "a row is 8 or 16 chunks of 16 bytes");
};

// A's values of one tile that a lane multiplies: for each group of eight rows, row lane / 4,
// columns 4t .. 4t + 3 with t = lane % 4.
template <class Input, int kWindowRows>
struct Fragment {
  std::conditional_t<kInputBytes<Input> == 4, uint4, uint2> x[kWindowRows / 8];
};

// Chunk c of row r of a stage lies at c ^ swizzle(r): the eight rows of an ldmatrix (slots 2t + s
// of a half), and the rows 4t + j of four lanes, are in different banks.
__device__ inline unsigned swizzle(unsigned row) { return row / 4 * 2 + row % 2; }

// Accumulators of one window and strip, and how a stage is added to them.
template <class Input, int kWindowRows, int kRowBytes>
class Sums {
  static constexpr bool kTf32 = kInputBytes<Input> == 4;
  static constexpr int kGroups = kWindowRows / 8;                     // of rows
  static constexpr int kTiles = kRowBytes / kInputBytes<Input> / 16;  // of 16 features

 public:
  __device__ explicit Sums(unsigned lane) : lane_(lane) {
    clear();
    if constexpr (kTf32) {
      const unsigned row = lane % 4 * 4;
      fetch_ = row * kRowBytes + (lane / 4 ^ swizzle(row)) * 16;
    } else {
      const unsigned slot = lane % 8, row = slot / 2 * 4 + slot % 2 + lane / 16 * 2;
      fetch_ = row * kRowBytes + (lane / 8 % 2 ^ slot) * 16;
    }
    keep(fetch_);
  }

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int r = 0; r < kGroups; ++r)
#pragma unroll
        for (int e = 0; e < 4; ++e) d_[i][r][e] = 0;
  }

  __device__ void add(std::uint32_t stage, const Fragment<Input, kWindowRows>& a) {
    if constexpr (kTf32) add_tf32(stage, a.x);
    else add_16_bit(stage, a.x);
  }

  // visit(index, four sums) for all of them, in a fixed order.
  template <class Visit>
  __device__ void for_each_four(Visit visit) {
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int r = 0; r < kGroups; ++r) visit(i * kGroups + r, d_[i][r]);
  }

  // store(group, odd, first feature, four sums) of row 8 * group + 2 * (lane % 4) + odd: whole
  // lines of 128 bytes per instruction, since halves of a 32-byte sector cost as much as all of it.
  template <class Store>
  __device__ void for_each_vector(Store store) const {
#pragma unroll
    for (int r = 0; r < kGroups; ++r)
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        if constexpr (kTf32) {
#pragma unroll
          for (int i = 0; i < kTiles; i += 2)
            store(r, odd, i * 16 + lane_ / 4 * 4,
                  make_float4(d_[i][r][odd], d_[i][r][odd + 2], d_[i + 1][r][odd],
                              d_[i + 1][r][odd + 2]));
        } else {
#pragma unroll
          for (int i = 0; i < kTiles; i += 2)
            store(r, odd, i * 16 + (lane_ / 4 % 4 * 8 + lane_ / 16 * 4),
                  transpose(d_[i][r][odd], d_[i][r][odd + 2], d_[i + 1][r][odd],
                            d_[i + 1][r][odd + 2]));
        }
      }
  }

 private:
  // A lane has feature lane / 4 of four chunks of eight features. Four lanes trade so that each has
  // four features of chunk lane / 4 % 4.
  __device__ float4 transpose(float x0, float x1, float x2, float x3) const {
    const bool first = (lane_ & 4) != 0, second = (lane_ & 8) != 0;
    const float y0 = __shfl_xor_sync(kFullWarp, first ? x0 : x1, 4);
    const float y1 = __shfl_xor_sync(kFullWarp, first ? x2 : x3, 4);
    const float a0 = first ? y0 : x0, a1 = first ? x1 : y0;  // of chunk first
    const float b0 = first ? y1 : x2, b1 = first ? x3 : y1;  // of chunk 2 + first
    const float z0 = __shfl_xor_sync(kFullWarp, second ? a0 : b0, 8);
    const float z1 = __shfl_xor_sync(kFullWarp, second ? a1 : b1, 8);
    return second ? make_float4(z0, z1, b0, b1) : make_float4(a0, a1, z0, z1);
  }

  __device__ void add_16_bit(std::uint32_t stage, const uint2 (&a)[kGroups]) {
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      std::uint32_t b[4];
      load_matrices_transposed(b, (stage + fetch_ ^ i % 4 * 32) + i / 4 * 128);
#pragma unroll
      for (int r = 0; r < kGroups; ++r)
        mma::multiply_add(Input{}, d_[i][r], b[0], b[1], b[2], b[3], a[r].x, a[r].y);
    }
  }

  __device__ void add_tf32(std::uint32_t stage, const uint4 (&a)[kGroups]) {
#pragma unroll
    for (int i = 0; i < kTiles; i += 2)
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        const std::uint32_t from = step * 2 * kRowBytes + i / 2 * 128;
        const uint4 even = load_shared_16(stage + fetch_ + from);
        const uint4 odd = load_shared_16((stage + fetch_ ^ 16) + kRowBytes + from);
#pragma unroll
        for (int r = 0; r < kGroups; ++r) {
          const std::uint32_t b0 = step == 0 ? a[r].x : a[r].z, b1 = step == 0 ? a[r].y : a[r].w;
          mma::multiply_add(Input{}, d_[i][r], even.x, even.y, odd.x, odd.y, b0, b1);
          mma::multiply_add(Input{}, d_[i + 1][r], even.z, even.w, odd.z, odd.w, b0, b1);
        }
      }
  }

  unsigned lane_;
  std::uint32_t fetch_;  // where in a stage; other chunks differ by an xor, other rows by a sum
  float d_[kTiles][kGroups][4];
};

// This warp's copies of B: in every stage the same chunk of kCopies consecutive rows.
template <class Input, int kRowBytes>
class RowLoader {
  static constexpr int kChunks = kRowBytes / 16;
  static constexpr int kCopies = kTileColumns * kChunks / 32;

 public:
  __device__ RowLoader(const Arguments& in, std::int64_t feature, unsigned lane)
      : row_bytes_(in.b_row_bytes) {
    const unsigned chunk = lane % kChunks, row = lane / kChunks * kCopies;
    col_idx_ = in.col_idx + row;
    // Past the last feature nothing is fetched. Whatever lies in the row would do, but lanes that
    // copy the same 16 bytes to different places each cost a request (15 % at N = 100 in fp16).
    const std::int64_t at = feature + chunk * 16 / kInputBytes<Input>;
    outside_ = at < in.n ? 0 : -1;
    b_ = static_cast<const char*>(in.b) + (at < in.n ? at : 0) * kInputBytes<Input>;
    to_ = row * kRowBytes + (chunk ^ swizzle(row)) * 16;
    keep(col_idx_);
    keep(b_);
    keep(to_);
  }

  __device__ void read_columns(std::int32_t tile) {
#pragma unroll
    for (int i = 0; i < kCopies / 4; ++i)
      columns_[i] =
          __ldg(reinterpret_cast<const int4*>(col_idx_ + std::int64_t{tile} * kTileColumns) + i);
  }

  // The tile whose columns were read last.
  __device__ void copy(std::uint32_t stage) const {
#pragma unroll
    for (int j = 0; j < kCopies; ++j) {
      const int4& four = columns_[j / 4];
      const std::int32_t column = j % 4 == 0   ? four.x
                                  : j % 4 == 1 ? four.y
                                  : j % 4 == 2 ? four.z
                                               : four.w;
      // The first row is 0, 4, 8 or 12: the next row's swizzle differs by 1, and by 2 four rows on.
      const std::uint32_t to = (stage + to_ ^ j % 2 * 16 ^ j / 4 * 32) + j * kRowBytes;
      copy_async_if_index(to, b_ + std::uint64_t{static_cast<std::uint32_t>(column)} * row_bytes_,
                          column | outside_);
    }
  }

 private:
  const std::int32_t* col_idx_;
  const char* b_;
  std::uint32_t row_bytes_;
  std::uint32_t to_;      // where in a stage the first row goes
  std::int32_t outside_;  // -1 past the last feature: a negative column is not fetched
  int4 columns_[kCopies / 4];
};

// Adds this block's sums of a split window to those of the other blocks. True in the warp that
// comes last, which then holds the window's sums. Ordered: every block has a slot for its sums, and
// they are added in the order of the blocks, whoever is last. Otherwise all add into one slot as
// they come, zero between launches: faster, but the rounding varies from launch to launch.
template <int kSums, class Totals>
__device__ bool combine(const Arguments& in, int split_index, std::int64_t strip,
                        std::int64_t strips, unsigned lane, Totals& totals) {
  const TileSplit split = in.splits[split_index];
  const auto slot = [&](std::int64_t index) {
    return in.sums + ((index * strips + strip) * kSums * 32 + lane) * 4;
  };
  float* const mine = slot(in.ordered ? blockIdx.x : split_index);
  totals.for_each_four([&](int i, const float(&x)[4]) {
    const float4 sum = make_float4(x[0], x[1], x[2], x[3]);
    if (in.ordered) __stcg(reinterpret_cast<float4*>(mine + i * 128), sum);
    else reduce_add(mine + i * 128, sum);
  });
  __threadfence();  // the sums are visible before the arrival is counted
  __syncwarp();
  unsigned before = 0;
  unsigned* const arrivals = in.arrivals + split_index * strips + strip;
  if (lane == 0) before = atomicAdd(arrivals, 1U);
  if (__shfl_sync(kFullWarp, before, 0) != static_cast<unsigned>(split.blocks) - 1U) return false;
  if (lane == 0) *arrivals = 0;
  __threadfence();  // and the others' sums are read after their arrivals
  totals.clear();
  for (int block = 0; block < (in.ordered ? split.blocks : 1); ++block) {
    float* const from = in.ordered ? slot(std::int64_t{split.first_block} + block) : mine;
    totals.for_each_four([&](int i, float(&x)[4]) {
      auto* const four = reinterpret_cast<float4*>(from + i * 128);
      const float4 sum = __ldcg(four);
      if (!in.ordered) *four = make_float4(0, 0, 0, 0);
      x[0] += sum.x;
      x[1] += sum.y;
      x[2] += sum.z;
      x[3] += sum.w;
    });
  }
  return true;
}

constexpr int kMaxThreads = 128;

// Blocks per SM that the registers must allow: as many as the rings leave room for, up to the point
// where values would be spilled.
template <int kWindowRows, int kRowBytes>
constexpr int kMinBlocks = kRowBytes == 256 || kWindowRows == 32 ? 4
                           : kWindowRows == 16                   ? 5
                                                                 : 7;

// block: (32, strips of a block, team); grid: (blocks of the work list, groups of strips).
// `shared`: a ring per warp, 128-byte aligned.
template <class Operand, int kRowBytes, int kStages>
__device__ void multiply_spans(const Arguments& in, const typename Operand::Source& a,
                               unsigned char* shared) {
  using S = Shape<Operand, kRowBytes, kStages>;
  constexpr int kWindowRows = Operand::kWindowRows;
  const unsigned lane = threadIdx.x;
  const int member = threadIdx.z;
  const std::int64_t strip = static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
  const std::int64_t strips = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
  const std::int64_t feature = strip * S::kFeatures;

  const TileSpan span = in.spans[static_cast<std::int64_t>(blockIdx.x) * blockDim.z + member];
  const bool is_shared = (span.tiles & TileSpan::kShared) != 0;
  const int tiles = span.tiles & ~TileSpan::kShared;
  RowLoader<typename S::Input, kRowBytes> rows(in, feature, lane);
  if (tiles > 0) rows.read_columns(span.first_tile);
  Operand operand(a, span, tiles, lane);
  // Bit i: tile i is its window's last. A window has a tile at least, so 32 windows cover a span.
  std::int32_t window = span.first_window;
  const std::int32_t end = in.window_ptr[min(window + lane + 1, in.windows)] - span.first_tile;
  const unsigned ends =
      __reduce_or_sync(kFullWarp, !is_shared && end > 0 && end <= tiles ? 1U << (end - 1) : 0U);

  const auto ring_of = [&](int m) {
    return shared + (m * blockDim.y + threadIdx.y) * S::kRingBytes;
  };
  const auto ring = static_cast<std::uint32_t>(__cvta_generic_to_shared(ring_of(member)));
  constexpr int kOfA = kTileColumns * kRowBytes;  // in a stage
  constexpr int kLead = Operand::kLead;
  const auto copy_rows = [&](int i, std::uint32_t stage) {
    if (i < tiles) rows.copy(stage);
    if (i + 1 < tiles) rows.read_columns(span.first_tile + i + 1);
  };
  const auto copy_a = [&](int i, std::uint32_t stage) {
    if (i < tiles) operand.copy(i, stage + kOfA);
  };
  if constexpr (kLead == 1) {
    copy_a(0, ring + (kStages - 1) * S::kStageBytes);
    commit_copies();
  }
  wait_for_predecessor();
  if (in.release_early) release_successor();
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    copy_rows(s, ring + s * S::kStageBytes);
    copy_a(s + kLead, ring + s * S::kStageBytes);
    commit_copies();
  }

  Sums<typename S::Input, kWindowRows, kRowBytes> sums(lane);
  const auto store = [&] {
    float* row[kWindowRows / 8][2];  // of C, of this lane's places; null past the last
#pragma unroll
    for (int r = 0; r < kWindowRows / 8; ++r)
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        std::int64_t place = std::int64_t{window} * kWindowRows + r * 8 + lane % 4 * 2 + odd;
        const bool inside = place < in.places;
        if (inside && in.row_ids != nullptr) place = in.row_ids[place];
        row[r][odd] = inside && place >= 0 ? in.c + place * in.ldc + feature : nullptr;
      }
    sums.for_each_vector([&](int r, int odd, int offset, float4 x) {
      if (row[r][odd] != nullptr && feature + offset < in.n)
        __stcs(reinterpret_cast<float4*>(row[r][odd] + offset), x);
    });
  };

  std::uint32_t full = ring, free = ring + (kStages - 1) * S::kStageBytes;
  const auto advance = [&](std::uint32_t stage) {
    return stage == ring + (kStages - 1) * S::kStageBytes ? ring : stage + S::kStageBytes;
  };
  Fragment<typename S::Input, kWindowRows> fragment;
  if constexpr (kLead == 1) {
    wait_copies<kStages - 1>();
    __syncwarp();
    if (tiles > 0) fragment = operand.load(free + kOfA);
  }
  for (int i = 0; i < tiles; ++i) {
    wait_copies<kStages - 2>();
    __syncwarp();  // the other lanes' copies too; and all are done with the stage filled next
    copy_rows(i + kStages - 1, free);
    copy_a(i + kStages - 1 + kLead, free);
    commit_copies();
    if constexpr (kLead == 0) {
      sums.add(full, operand.load(full + kOfA));
    } else {
      Fragment<typename S::Input, kWindowRows> next = fragment;
      if (i + 1 < tiles) next = operand.load(full + kOfA);
      sums.add(full, fragment);
      fragment = next;
    }
    full = advance(full);
    free = advance(free);
    if ((ends >> i & 1U) != 0) {
      store();
      sums.clear();
      ++window;
    }
  }
  release_successor();
  if (!is_shared) return;

  // One window for the whole team: the first member adds the others' sums to its own.
  wait_copies<0>();
  __syncthreads();
  if (member > 0)
    sums.for_each_four([&](int i, const float(&x)[4]) {
      reinterpret_cast<float4*>(ring_of(member))[i * 32 + lane] =
          make_float4(x[0], x[1], x[2], x[3]);
    });
  __syncthreads();
  if (member > 0) return;
  for (int m = 1; m < static_cast<int>(blockDim.z); ++m) {
    const auto* theirs = reinterpret_cast<const float4*>(ring_of(m));
    sums.for_each_four([&](int i, float(&x)[4]) {
      const float4 sum = theirs[i * 32 + lane];
      x[0] += sum.x;
      x[1] += sum.y;
      x[2] += sum.z;
      x[3] += sum.w;
    });
  }
  if (span.split < 0 || combine<S::kSums>(in, span.split, strip, strips, lane, sums)) store();
}

}  // namespace spmmbench::tiles
