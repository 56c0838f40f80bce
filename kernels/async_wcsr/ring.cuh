#pragma once
// C = A * B for A in WCSR. A warp walks a span of tiles for one strip of features. A tile's 16 rows
// of B come by cp.async into a ring of kStages stages that belongs to the warp alone, so that the
// copies run ahead across tiles and windows without any barrier between warps:
//
//      col_idx of tile i + kStages            registers
//      B rows and A box of tile i + kStages - 1 .. i + 1     in flight, shared memory
//      B rows and A box of tile i             fragments -> mma
//
//   stage: | 16 rows of B, kRowBytes each, 16-byte chunks swizzled | A box: kWindowRows x 16 values
//   |
//
// The product is C^T = B^T * A^T: mma's m is the features, n the window's rows, k the tile's
// columns, so that a window of 8 rows fills n. Any order of k serves as long as both operands
// follow it: slots 2t, 2t + 1, 2t + 8, 2t + 9 (16-bit), or t and t + 4 of two steps (tf32), stand
// for columns 4t .. 4t + 3, so that a lane's values of A are side by side in the row-major box.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "common/async_copy.cuh"
#include "common/mma.cuh"
#include "common/reduce_add.cuh"
#include "format/wcsr_work.hpp"

namespace spmmbench::wcsr {

constexpr int kTileColumns = 16;
constexpr unsigned kFullWarp = 0xFFFFFFFFU;

struct Arguments {
  const WcsrSpan* spans;
  const std::int32_t* splits;
  const std::int32_t* window_ptr;
  const std::int32_t* col_idx;
  const void* values;
  const std::int32_t* row_ids;  // place -> row of C; null when the places are the rows
  std::int32_t rows;
  std::int32_t windows;
  const void* b;
  std::uint32_t b_row_bytes;
  float* c;
  std::int64_t ldc;
  std::int64_t n;
  float* sums;         // of split windows: [split][strip][sum][lane][4]; all zero between launches
  unsigned* arrivals;  // [split][strip]; all zero between launches
};

template <class Input>
constexpr int kInputBytes = 2;
template <>
constexpr int kInputBytes<mma::Tf32> = 4;

template <class Input, int kWindowRows, int kRowBytes, int kStages>
struct Shape {
  static constexpr int kFeatures = kRowBytes / kInputBytes<Input>;  // of a strip
  static constexpr int kBoxBytes = kWindowRows * kTileColumns * kInputBytes<Input>;
  static constexpr int kStageBytes = kTileColumns * kRowBytes + kBoxBytes;
  static constexpr int kRingBytes = kStages * kStageBytes;     // of a warp
  static constexpr int kSums = kWindowRows * kFeatures / 128;  // float4 per lane
  static_assert(kRowBytes == 128 || kRowBytes == 256, "a row is 8 or 16 chunks of 16 bytes");
  static_assert(kRingBytes >= kSums * 32 * 16, "a warp's sums fit its ring");
};

// Chunk c of row r of a stage lies at c ^ swizzle(r): the eight rows of an ldmatrix (slots 2t + s
// of a half), and the rows 4t + j of four lanes, are in different banks.
__device__ inline int swizzle(int row) { return row / 4 * 2 + row % 2; }

// Accumulators of one window and strip, and how a stage is added to them.
template <class Input, int kWindowRows, int kRowBytes>
class Sums {
  static constexpr bool kTf32 = kInputBytes<Input> == 4;
  static constexpr int kGroups = kWindowRows / 8;                     // of rows
  static constexpr int kTiles = kRowBytes / kInputBytes<Input> / 16;  // of 16 features
  static constexpr int kFetches = 4;  // different places that a lane reads B at

 public:
  __device__ explicit Sums(int lane) : lane_(lane) {
    clear();
#pragma unroll
    for (int i = 0; i < kFetches; ++i) {
      if constexpr (kTf32) {
        fetch_[i] = (lane % 4 * 4 + i) * kRowBytes + (lane / 4 ^ swizzle(lane % 4 * 4 + i)) * 16;
      } else {
        const int slot = lane % 8, chunk = i * 2 + lane / 8 % 2;
        const int row = slot / 2 * 4 + slot % 2 + lane / 16 * 2;
        fetch_[i] = row * kRowBytes + (chunk ^ slot) * 16;
      }
      keep(fetch_[i]);
    }
  }

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int r = 0; r < kGroups; ++r)
#pragma unroll
        for (int e = 0; e < 4; ++e) d_[i][r][e] = 0;
  }

  __device__ void add(std::uint32_t stage) {
    const std::uint32_t box = stage + kTileColumns * kRowBytes;
    if constexpr (kTf32) add_tf32(stage, box);
    else add_16_bit(stage, box);
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

  __device__ void add_16_bit(std::uint32_t stage, std::uint32_t box) {
    uint2 a[kGroups];
#pragma unroll
    for (int r = 0; r < kGroups; ++r) a[r] = load_shared_8(box + r * 256 + lane_ * 8);
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      std::uint32_t b[4];
      load_matrices_transposed(b, stage + fetch_[i % 4] + i / 4 * 128);
#pragma unroll
      for (int r = 0; r < kGroups; ++r)
        mma::multiply_add(Input{}, d_[i][r], b[0], b[1], b[2], b[3], a[r].x, a[r].y);
    }
  }

  __device__ void add_tf32(std::uint32_t stage, std::uint32_t box) {
    uint4 a[kGroups];
#pragma unroll
    for (int r = 0; r < kGroups; ++r) a[r] = load_shared_16(box + r * 512 + lane_ * 16);
#pragma unroll
    for (int i = 0; i < kTiles; i += 2)
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        const uint4 even = load_shared_16(stage + fetch_[2 * step] + i / 2 * 128);
        const uint4 odd = load_shared_16(stage + fetch_[2 * step + 1] + i / 2 * 128);
#pragma unroll
        for (int r = 0; r < kGroups; ++r) {
          const std::uint32_t b0 = step == 0 ? a[r].x : a[r].z, b1 = step == 0 ? a[r].y : a[r].w;
          mma::multiply_add(Input{}, d_[i][r], even.x, even.y, odd.x, odd.y, b0, b1);
          mma::multiply_add(Input{}, d_[i + 1][r], even.z, even.w, odd.z, odd.w, b0, b1);
        }
      }
  }

  int lane_;
  std::uint32_t fetch_[kFetches];  // offset in a stage
  float d_[kTiles][kGroups][4];
};

// This warp's copies: in every stage the same chunk of kCopies consecutive rows of B, and a share
// of the box of A.
template <class Input, int kWindowRows, int kRowBytes, int kStages>
class Loader {
  using S = Shape<Input, kWindowRows, kRowBytes, kStages>;
  static constexpr int kChunks = kRowBytes / 16;
  static constexpr int kCopies = kTileColumns * kChunks / 32;

 public:
  __device__ Loader(const Arguments& in, std::int64_t feature, int lane)
      : row_bytes_(in.b_row_bytes), box_to_(kTileColumns * kRowBytes + lane * kBoxPiece) {
    const int chunk = lane % kChunks, row = lane / kChunks * kCopies;
    inside_ = feature + chunk * 16 / kInputBytes<Input> < in.n;
    col_idx_ = in.col_idx + row;
    box_ = static_cast<const char*>(in.values) + lane * kBoxPiece;
    b_ = static_cast<const char*>(in.b) + feature * kInputBytes<Input> + chunk * 16;
    keep(col_idx_);
    keep(box_);
    keep(b_);
#pragma unroll
    for (int odd = 0; odd < 2; ++odd) {
      to_[odd] = row * kRowBytes + (chunk ^ swizzle(row + odd)) * 16;
      keep(to_[odd]);
    }
  }

  __device__ void read_columns(std::int32_t tile) {
#pragma unroll
    for (int i = 0; i < kCopies / 4; ++i)
      columns_[i] =
          __ldg(reinterpret_cast<const int4*>(col_idx_ + std::int64_t{tile} * kTileColumns) + i);
  }

  // The tile whose columns were read last.
  __device__ void copy(std::int32_t tile, std::uint32_t stage) const {
#pragma unroll
    for (int j = 0; j < kCopies; ++j) {
      const int4& four = columns_[j / 4];
      const std::int32_t column = j % 4 == 0   ? four.x
                                  : j % 4 == 1 ? four.y
                                  : j % 4 == 2 ? four.z
                                               : four.w;
      // Four rows on, the swizzle differs by 2; the row it starts from is 0 or 8 there.
      const std::uint32_t to = j < 4 ? to_[j % 2] : to_[j % 2] ^ 32;
      copy_async(stage + to + j * kRowBytes,
                 b_ + static_cast<std::uint64_t>(static_cast<std::uint32_t>(column)) * row_bytes_,
                 inside_ && column >= 0);
    }
#pragma unroll
    for (int i = 0; i < S::kBoxBytes; i += 32 * kBoxPiece)
      copy_async_cached<kBoxPiece>(stage + box_to_ + i,
                                   box_ + std::int64_t{tile} * S::kBoxBytes + i);
  }

 private:
  static constexpr int kBoxPiece = S::kBoxBytes == 256 ? 8 : 16;  // bytes per lane

  const std::int32_t* col_idx_;
  const char* box_;
  const char* b_;
  std::uint32_t row_bytes_;
  std::uint32_t box_to_;
  bool inside_;
  std::uint32_t to_[2];
  int4 columns_[kCopies / 4];
};

// Adds this block's sums of a split window to those of the other blocks. True in the warp that
// comes last, which then holds the window's sums. The order of the additions varies from launch to
// launch.
template <int kSums, class Totals>
__device__ bool combine(const Arguments& in, int split, std::int64_t strip, std::int64_t strips,
                        int lane, Totals& totals) {
  float* const at = in.sums + ((split * strips + strip) * kSums * 32 + lane) * 4;
  totals.for_each_four([&](int i, const float(&x)[4]) {
    reduce_add(at + i * 128, make_float4(x[0], x[1], x[2], x[3]));
  });
  __threadfence();  // the sums are visible before the arrival is counted
  __syncwarp();
  unsigned before = 0;
  unsigned* const arrivals = in.arrivals + split * strips + strip;
  if (lane == 0) before = atomicAdd(arrivals, 1U);
  if (__shfl_sync(kFullWarp, before, 0) != static_cast<unsigned>(in.splits[split]) - 1U)
    return false;
  if (lane == 0) *arrivals = 0;
  __threadfence();  // and the others' sums are read after their arrivals
  totals.for_each_four([&](int i, float(&x)[4]) {
    auto* const four = reinterpret_cast<float4*>(at + i * 128);
    const float4 sum = __ldcg(four);
    *four = make_float4(0, 0, 0, 0);
    x[0] = sum.x;
    x[1] = sum.y;
    x[2] = sum.z;
    x[3] = sum.w;
  });
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
template <class Input, int kWindowRows, int kRowBytes, int kStages>
__global__ void __launch_bounds__(kMaxThreads, kMinBlocks<kWindowRows, kRowBytes>)
    ring_kernel(const __grid_constant__ Arguments in) {
  using S = Shape<Input, kWindowRows, kRowBytes, kStages>;
  extern __shared__ __align__(128) unsigned char shared[];
  const int lane = threadIdx.x, member = threadIdx.z;
  const std::int64_t strip = static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
  const std::int64_t strips = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
  const std::int64_t feature = strip * S::kFeatures;

  const WcsrSpan span = in.spans[static_cast<std::int64_t>(blockIdx.x) * blockDim.z + member];
  const bool is_shared = (span.tiles & WcsrSpan::kShared) != 0;
  const int tiles = span.tiles & ~WcsrSpan::kShared;
  Loader<Input, kWindowRows, kRowBytes, kStages> loader(in, feature, lane);
  if (tiles > 0) loader.read_columns(span.first_tile);
  // Bit i: tile i is its window's last. A window has a tile at least, so 32 windows cover a span.
  std::int32_t window = span.first_window;
  const std::int32_t end = in.window_ptr[min(window + lane + 1, in.windows)] - span.first_tile;
  const unsigned ends =
      __reduce_or_sync(kFullWarp, !is_shared && end > 0 && end <= tiles ? 1U << (end - 1) : 0U);

  const auto ring_of = [&](int m) {
    return shared + (m * blockDim.y + threadIdx.y) * S::kRingBytes;
  };
  const auto ring = static_cast<std::uint32_t>(__cvta_generic_to_shared(ring_of(member)));
  wait_for_predecessor();
  release_successor();
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < tiles) loader.copy(span.first_tile + s, ring + s * S::kStageBytes);
    if (s + 1 < tiles) loader.read_columns(span.first_tile + s + 1);
    commit_copies();
  }

  Sums<Input, kWindowRows, kRowBytes> sums(lane);
  const auto store = [&] {
    float* row[kWindowRows / 8][2];  // of C, of this lane's places; null past the last
#pragma unroll
    for (int r = 0; r < kWindowRows / 8; ++r)
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        std::int64_t place = std::int64_t{window} * kWindowRows + r * 8 + lane % 4 * 2 + odd;
        const bool inside = place < in.rows;
        if (inside && in.row_ids != nullptr) place = in.row_ids[place];
        row[r][odd] = inside ? in.c + place * in.ldc + feature : nullptr;
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
  for (int i = 0; i < tiles; ++i) {
    wait_copies<kStages - 2>();
    __syncwarp();  // the other lanes' copies too; and all are done with the stage filled next
    if (i + kStages - 1 < tiles) loader.copy(span.first_tile + i + kStages - 1, free);
    if (i + kStages < tiles) loader.read_columns(span.first_tile + i + kStages);
    commit_copies();
    sums.add(full);
    full = advance(full);
    free = advance(free);
    if ((ends >> i & 1U) != 0) {
      store();
      sums.clear();
      ++window;
    }
  }
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

}  // namespace spmmbench::wcsr
