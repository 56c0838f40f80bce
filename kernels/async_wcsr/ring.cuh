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
// mma's m is the window's rows (8-row windows leave rows 8..15 of the accumulators at zero), n is
// the features, k the tile's columns. Any order of k serves as long as both operands follow it:
// slots 2t, 2t + 1, 2t + 8, 2t + 9 (16-bit) and t, t + 4 of two steps (tf32) stand for columns 4t
// .. 4t + 3, so that a lane's values of A are side by side in the row-major box.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "common/async_copy.cuh"
#include "common/mma.cuh"
#include "format/wcsr_work.hpp"

namespace spmmbench::wcsr {

constexpr int kTileColumns = 16;
constexpr unsigned kFullWarp = 0xFFFFFFFFU;

struct Arguments {
  const WcsrSpan* spans;
  const WcsrPart* parts;
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
  int strips;          // per block
  float2* sums;        // of split windows: [part][strip][sum][lane]
  unsigned* arrivals;  // [first part of a window][strip]; all zero between launches
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
  static constexpr int kRingBytes = kStages * kStageBytes;    // of a warp
  static constexpr int kSums = kWindowRows * kFeatures / 64;  // float2 per lane
  static_assert(kRowBytes == 128 || kRowBytes == 256, "a row is 8 or 16 chunks of 16 bytes");
  static_assert(kRingBytes >= kSums * 32 * 8, "a warp's sums fit its ring");
};

// Accumulators of one window and strip, and how a stage is added to them.
template <class Input, int kWindowRows, int kRowBytes>
class Sums {
  static constexpr int kMmaRows = (kWindowRows + 15) / 16;
  static constexpr int kTiles = kRowBytes / kInputBytes<Input> / 8;  // of 8 features
  static constexpr bool kTf32 = kInputBytes<Input> == 4;
  static constexpr int kPairs = kWindowRows == 8 ? 1 : 2;  // rows g and g + 8

 public:
  // Chunk c of a row lies at c ^ swizzle(row): the eight rows of one ldmatrix, and the rows 4t + i
  // of four lanes, are in different banks.
  __device__ static int swizzle(int row) { return kTf32 ? row / 4 : row / 4 * 2 + row % 2; }

  __device__ Sums() { clear(); }
  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int m = 0; m < kMmaRows; ++m)
#pragma unroll
        for (int e = 0; e < 4; ++e) d_[i][m][e] = 0;
  }

  __device__ void add(std::uint32_t stage, int lane) {
    const std::uint32_t box = stage + kTileColumns * kRowBytes;
    if constexpr (kTf32) add_tf32(stage, box, lane);
    else add_16_bit(stage, box, lane);
  }

  // visit(float2&) for every pair of sums that belongs to a row of the window, in a fixed order.
  template <class Visit>
  __device__ void for_each_pair(Visit visit) {
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
#pragma unroll
      for (int m = 0; m < kMmaRows; ++m)
#pragma unroll
        for (int p = 0; p < kPairs; ++p)
          visit((i * kMmaRows + m) * kPairs + p, d_[i][m][2 * p], d_[i][m][2 * p + 1]);
  }

  // store(group of eight rows, first feature, four sums of row lane / 4 of the group) with whole
  // sectors of 32 bytes per instruction.
  template <class Store>
  __device__ void for_each_vector(int lane, Store store) const {
    const int t = lane % 4;
#pragma unroll
    for (int m = 0; m < kMmaRows; ++m)
#pragma unroll
      for (int p = 0; p < kPairs; ++p) {
        const int group = m * 2 + p;
        if constexpr (kTf32) {
#pragma unroll
          for (int i = 0; i < kTiles; i += 4)
#pragma unroll
            for (int e = 0; e < 2; ++e)
              store(group, i * 8 + e * 16 + t * 4,
                    make_float4(d_[i][m][2 * p + e], d_[i + 1][m][2 * p + e],
                                d_[i + 2][m][2 * p + e], d_[i + 3][m][2 * p + e]));
        } else {
          // A lane holds 8 bytes of two neighbouring 8-feature tiles; its neighbour has the other
          // halves. Even lanes complete the first tile, odd ones the second.
          const bool odd = t % 2 != 0;
#pragma unroll
          for (int i = 0; i < kTiles; i += 2) {
            const float x0 = d_[i][m][2 * p], x1 = d_[i][m][2 * p + 1];
            const float y0 = d_[i + 1][m][2 * p], y1 = d_[i + 1][m][2 * p + 1];
            const float z0 = __shfl_xor_sync(kFullWarp, odd ? x0 : y0, 1);
            const float z1 = __shfl_xor_sync(kFullWarp, odd ? x1 : y1, 1);
            store(group, (i + odd) * 8 + t / 2 * 4,
                  odd ? make_float4(z0, z1, y0, y1) : make_float4(x0, x1, z0, z1));
          }
        }
      }
  }

 private:
  __device__ void add_16_bit(std::uint32_t stage, std::uint32_t box, int lane) {
    uint2 a[2 * kMmaRows] = {};
#pragma unroll
    for (int r = 0; r < kWindowRows / 8; ++r) a[r] = load_shared_8(box + r * 256 + lane * 8);
    const int slot = lane % 8;
    const int row = slot / 2 * 4 + slot % 2 + lane / 8 % 2 * 2;
    const std::uint32_t row_at = stage + row * kRowBytes;
#pragma unroll
    for (int i = 0; i < kTiles; i += 2) {
      std::uint32_t b[4];
      load_matrices_transposed(b, row_at + ((i + lane / 16) ^ slot) * 16);
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int m = 0; m < kMmaRows; ++m)
          mma::multiply_add(Input{}, d_[i + j][m], a[2 * m].x, a[2 * m + 1].x, a[2 * m].y,
                            a[2 * m + 1].y, b[2 * j], b[2 * j + 1]);
    }
  }

  __device__ void add_tf32(std::uint32_t stage, std::uint32_t box, int lane) {
    const int g = lane / 4, t = lane % 4;
    uint4 a[2 * kMmaRows] = {};
#pragma unroll
    for (int r = 0; r < kWindowRows / 8; ++r) a[r] = load_shared_16(box + r * 512 + lane * 16);
    // Column g of the four mma of a 128-byte piece is one chunk, so that a lane ends up with whole
    // chunks of C: t (columns 2t) and t + 4 (columns 2t + 1).
    const int chunk = (g / 2 + g % 2 * 4) ^ t;
#pragma unroll
    for (int i = 0; i < kTiles; i += 4) {
      uint4 b[4];
#pragma unroll
      for (int j = 0; j < 4; ++j)
        b[j] = load_shared_16(stage + (4 * t + j) * kRowBytes + (i * 2 + chunk) * 16);
#pragma unroll
      for (int m = 0; m < kMmaRows; ++m) {
        const uint4 &low = a[2 * m], &high = a[2 * m + 1];
        mma::multiply_add(Input{}, d_[i][m], low.x, high.x, low.y, high.y, b[0].x, b[1].x);
        mma::multiply_add(Input{}, d_[i + 1][m], low.x, high.x, low.y, high.y, b[0].y, b[1].y);
        mma::multiply_add(Input{}, d_[i + 2][m], low.x, high.x, low.y, high.y, b[0].z, b[1].z);
        mma::multiply_add(Input{}, d_[i + 3][m], low.x, high.x, low.y, high.y, b[0].w, b[1].w);
        mma::multiply_add(Input{}, d_[i][m], low.z, high.z, low.w, high.w, b[2].x, b[3].x);
        mma::multiply_add(Input{}, d_[i + 1][m], low.z, high.z, low.w, high.w, b[2].y, b[3].y);
        mma::multiply_add(Input{}, d_[i + 2][m], low.z, high.z, low.w, high.w, b[2].z, b[3].z);
        mma::multiply_add(Input{}, d_[i + 3][m], low.z, high.z, low.w, high.w, b[2].w, b[3].w);
      }
    }
  }

  float d_[kTiles][kMmaRows][4];
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
      : col_idx_(in.col_idx + lane / kChunks * kCopies),
        box_(static_cast<const char*>(in.values) + lane * 16),
        row_bytes_(in.b_row_bytes),
        lane_(lane) {
    const int chunk = lane % kChunks;
    inside_ = feature + chunk * 16 / kInputBytes<Input> < in.n;
    b_ = static_cast<const char*>(in.b) + feature * kInputBytes<Input> + chunk * 16;
    const int row = lane / kChunks * kCopies;
#pragma unroll
    for (int odd = 0; odd < 2; ++odd)
      to_[odd] =
          row * kRowBytes + (chunk ^ Sums<Input, kWindowRows, kRowBytes>::swizzle(row + odd)) * 16;
  }

  __device__ void read_columns(std::int64_t tile) {
#pragma unroll
    for (int i = 0; i < kCopies / 4; ++i)
      columns_[i] = __ldg(reinterpret_cast<const int4*>(col_idx_ + tile * kTileColumns) + i);
  }

  // The tile whose columns were read last.
  __device__ void copy(std::int64_t tile, std::uint32_t stage) const {
#pragma unroll
    for (int j = 0; j < kCopies; ++j) {
      const int4& four = columns_[j / 4];
      const std::int32_t column = j % 4 == 0   ? four.x
                                  : j % 4 == 1 ? four.y
                                  : j % 4 == 2 ? four.z
                                               : four.w;
      // swizzle(row + j) is that of row + j % 2, four rows further for every four of j.
      const std::uint32_t to =
          kCopies == 4 ? to_[j % 2]
                       : (j < 4 ? to_[j % 2] : to_[j % 2] ^ (kInputBytes<Input> == 4 ? 16 : 32));
      copy_async(stage + to + j * kRowBytes,
                 b_ + static_cast<std::uint64_t>(static_cast<std::uint32_t>(column)) * row_bytes_,
                 inside_ && column >= 0);
    }
    constexpr int kPieces = S::kBoxBytes / 16;
#pragma unroll
    for (int i = 0; i < kPieces; i += 32)
      if (kPieces >= 32 || lane_ < kPieces)
        copy_async_cached(stage + kTileColumns * kRowBytes + (i + lane_) * 16,
                          box_ + tile * S::kBoxBytes + i * 16);
  }

 private:
  const std::int32_t* col_idx_;
  const char* box_;
  const char* b_;
  std::uint32_t row_bytes_;
  int lane_;
  bool inside_;
  std::uint32_t to_[2];
  int4 columns_[kCopies / 4];
};

// Adds the sums of the other blocks that share a split window. True in the warp that arrives last.
// The sums are added in the order of the parts, whoever is last: the result does not vary.
template <int kSums, class Totals>
__device__ bool combine_parts(const Arguments& in, int part_index, std::int64_t strip,
                              std::int64_t strips, int lane, Totals& totals) {
  const WcsrPart part = in.parts[part_index];
  const auto at = [&](std::int64_t index) {
    return in.sums + (index * strips + strip) * kSums * 32 + lane;
  };
  totals.for_each_pair(
      [&](int i, float& x, float& y) { __stcg(at(part_index) + i * 32, make_float2(x, y)); });
  __threadfence();  // the sums are visible before the arrival is counted
  __syncwarp();
  unsigned before = 0;
  unsigned* const arrivals = in.arrivals + part.first * strips + strip;
  if (lane == 0) before = atomicAdd(arrivals, 1U);
  if (__shfl_sync(kFullWarp, before, 0) != static_cast<unsigned>(part.count) - 1U) return false;
  if (lane == 0) *arrivals = 0;
  __threadfence();  // and the others' sums are read after their arrivals
  totals.clear();
  for (int p = 0; p < part.count; ++p)
    totals.for_each_pair([&](int i, float& x, float& y) {
      const float2 sum = __ldcg(at(std::int64_t{part.first} + p) + i * 32);
      x += sum.x;
      y += sum.y;
    });
  return true;
}

constexpr int kMaxThreads = 256;

// grid: (blocks of the work list, strips / in.strips); block: in.strips * team warps. Warp i has
// strip i % in.strips and span i / in.strips of the block.
template <class Input, int kWindowRows, int kRowBytes, int kStages>
__global__ void __launch_bounds__(kMaxThreads) ring_kernel(const __grid_constant__ Arguments in) {
  using S = Shape<Input, kWindowRows, kRowBytes, kStages>;
  extern __shared__ __align__(128) unsigned char shared[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int team = blockDim.x / 32 / in.strips, member = warp / in.strips;
  const std::int64_t strip = static_cast<std::int64_t>(blockIdx.y) * in.strips + warp % in.strips;
  const std::int64_t strips = static_cast<std::int64_t>(gridDim.y) * in.strips;
  const std::int64_t feature = strip * S::kFeatures;

  const WcsrSpan span = in.spans[static_cast<std::int64_t>(blockIdx.x) * team + member];
  const bool is_shared = (span.tiles & WcsrSpan::kShared) != 0;
  const int tiles = span.tiles & ~WcsrSpan::kShared;
  Loader<Input, kWindowRows, kRowBytes, kStages> loader(in, feature, lane);
  if (tiles > 0) loader.read_columns(span.first_tile);
  // Bit i: tile i is its window's last. A window has a tile at least, so 32 windows cover a span.
  std::int32_t window = span.first_window;
  const std::int32_t end = in.window_ptr[min(window + lane + 1, in.windows)] - span.first_tile;
  const unsigned ends = __reduce_or_sync(kFullWarp, end > 0 && end <= tiles ? 1U << (end - 1) : 0U);

  const auto ring_of = [&](int w) { return shared + w * S::kRingBytes; };
  const auto ring = static_cast<std::uint32_t>(__cvta_generic_to_shared(ring_of(warp)));
  wait_for_predecessor();
  release_successor();
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < tiles) loader.copy(span.first_tile + s, ring + s * S::kStageBytes);
    if (s + 1 < tiles) loader.read_columns(span.first_tile + s + 1);
    commit_copies();
  }

  Sums<Input, kWindowRows, kRowBytes> sums;
  const auto store = [&] {
    std::int64_t row[kWindowRows / 8];  // of C, of this lane's places
    bool inside[kWindowRows / 8];
#pragma unroll
    for (int r = 0; r < kWindowRows / 8; ++r) {
      row[r] = std::int64_t{window} * kWindowRows + r * 8 + lane / 4;
      inside[r] = row[r] < in.rows;
      if (inside[r] && in.row_ids != nullptr) row[r] = in.row_ids[row[r]];
    }
    sums.for_each_vector(lane, [&](int group, int offset, float4 x) {
      if (inside[group] && feature + offset < in.n)
        __stcs(reinterpret_cast<float4*>(in.c + row[group] * in.ldc + feature + offset), x);
    });
  };

  for (int base = 0; base < tiles; base += kStages) {
#pragma unroll
    for (int s = 0; s < kStages; ++s) {
      const int i = base + s;
      if (i >= tiles) break;
      wait_copies<kStages - 2>();
      __syncwarp();  // the other lanes' copies too; and all are done with the stage filled next
      if (i + kStages - 1 < tiles)
        loader.copy(span.first_tile + i + kStages - 1,
                    ring + (s + kStages - 1) % kStages * S::kStageBytes);
      if (i + kStages < tiles) loader.read_columns(span.first_tile + i + kStages);
      commit_copies();
      sums.add(ring + s * S::kStageBytes, lane);
      if (!is_shared && (ends >> i & 1U) != 0) {
        store();
        sums.clear();
        ++window;
      }
    }
  }
  if (!is_shared) return;

  // One window for the whole team: the first member adds the others' sums to its own.
  wait_copies<0>();
  __syncthreads();
  if (member > 0)
    sums.for_each_pair([&](int i, float& x, float& y) {
      reinterpret_cast<float2*>(ring_of(warp))[i * 32 + lane] = make_float2(x, y);
    });
  __syncthreads();
  if (member > 0) return;
  for (int m = 1; m < team; ++m) {
    const auto* theirs = reinterpret_cast<const float2*>(ring_of(m * in.strips + warp));
    sums.for_each_pair([&](int i, float& x, float& y) {
      const float2 sum = theirs[i * 32 + lane];
      x += sum.x;
      y += sum.y;
    });
  }
  if (span.part < 0 || combine_parts<S::kSums>(in, span.part, strip, strips, lane, sums)) store();
}

}  // namespace spmmbench::wcsr
