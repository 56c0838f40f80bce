#pragma once
// One tile of an RS-Tile window: bitmap decoding, the products, and the sums on their way out.
//
// C^T = B^T * A^T (RSH-SpMM, section 3.3.2): mma's m = 16 are features, n = 8 are rows of the
// window, k are columns, so that an 8-row block wastes nothing. Lane 4g + t decodes, of row g of
// every block, the columns 2t and 2t + 1 of both groups:
//
//    bitmap word   row 0       row 1       ...  row g          ...
//                  c0 .. c7    c0 .. c7         c0 .. [2t][2t+1] .. c7
//                  '---- popcount of all bits below: where the value lies ---'

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "common/async_copy.cuh"
#include "common/mma.cuh"
#include "rsh/arguments.hpp"

namespace spmmbench::rsh {

constexpr unsigned kFullWarp = 0xFFFFFFFFU;

template <class Input>
constexpr bool kIsTf32 = false;
template <>
constexpr bool kIsTf32<mma::Tf32> = true;
template <class Input>
constexpr int kInputBytes = kIsTf32<Input> ? 4 : 2;

// kHeight: blocks per group (8 rows each). kRowBytes: of a row of B that a warp takes, its strip.
template <class Input, int kHeight, int kRowBytes, int kStages>
struct Shape {
  static_assert(kRowBytes == 128 || kRowBytes == 256, "a row is 8 or 16 chunks of 16 bytes");
  static constexpr int kFeatures = kRowBytes / kInputBytes<Input>;
  static constexpr int kFeatureTiles = kFeatures / 16;
  static constexpr int kQuads = kHeight * kFeatureTiles;  // float4 of sums per lane
  static constexpr int kStageBytes = kTileColumns * kRowBytes;
  // Of a warp; a warp's sums pass through its ring when windows are shared.
  static constexpr int kRingBytes =
      kStages * kStageBytes > kQuads * 512 ? kStages* kStageBytes : kQuads * 512;
  // Of a warp's columns and bitmaps, a 16-byte piece more for arrays that begin inside one.
  static constexpr int kColumnBytes = RsCut::kMaxSpanTiles * kTileColumns * 4 + 16;
  static constexpr int kBitmapBytes = RsCut::kMaxSpanTiles * 2 * kHeight * 8 + 16;
};

// A's fragments of one tile for one lane. 16-bit: [k half][block], two values in a word; tf32:
// [k step][block][value].
template <class Input, int kHeight>
struct Fragment {
  std::uint32_t x[2][kHeight][kIsTf32<Input> ? 2 : 1];
};

template <class Input>
using Stored = std::conditional_t<kIsTf32<Input>, std::uint32_t, std::uint16_t>;

// Decodes the bitmaps at `bits` (of one group or two) into `out`. `values`: in shared memory, from
// the tile's first value on; moves past its last. Up to two more are read and not used.
template <class Input, int kHeight>
__device__ inline void decode(const uint2* bits, bool one_group, const Stored<Input>*& values,
                              int lane, Fragment<Input, kHeight>& out) {
  const bool upper = lane >= 16;  // row g of a block is in its second word
  const int shift = lane / 4 % 4 * 8 + lane % 4 * 2;
  const std::uint32_t below = (1U << shift) - 1U;
#pragma unroll
  for (int k = 0; k < 2; ++k)
#pragma unroll
    for (int h = 0; h < kHeight; ++h) {
      const uint2 word = k == 1 && one_group ? make_uint2(0, 0) : bits[k * kHeight + h];
      const int low = __popc(word.x);
      const std::uint32_t half = upper ? word.y : word.x;
      const Stored<Input>* const at = values + ((upper ? low : 0) + __popc(half & below));
      const std::uint32_t x0 = at[0], x1 = at[1], set = half >> shift & 3U;
      if constexpr (kIsTf32<Input>) {
        out.x[k][h][0] = (set & 1U) != 0 ? x0 : 0U;
        out.x[k][h][1] = set == 3U ? x1 : set == 2U ? x0 : 0U;
      } else {
        // Bytes 0, 1 are x0, 4, 5 are x1, 2 and 3 are zero.
        const std::uint32_t with_second = 0x54101022U, without = 0x22102222U;
        const std::uint32_t pick = (set & 2U) != 0 ? with_second : without;
        out.x[k][h][0] = __byte_perm(x0, x1, (set & 1U) != 0 ? pick >> 16 : pick);
      }
      values += low + __popc(word.y);
    }
}

// Row i of a stage holds kRowBytes of the row of B of the tile's column i; its 16-byte chunk c lies
// at c ^ (i % 8), so that neither the eight rows of an ldmatrix nor rows 2t of four lanes collide.
__device__ inline std::uint32_t chunk_at(int row, int chunk, int row_bytes) {
  return static_cast<std::uint32_t>(row * row_bytes + (chunk ^ row % 8) * 16);
}

template <class Input, int kHeight, int kRowBytes>
struct Sums {
  static constexpr int kFeatureTiles = kRowBytes / kInputBytes<Input> / 16;
  float d[kHeight][kFeatureTiles][4];

  __device__ void clear() {
#pragma unroll
    for (int h = 0; h < kHeight; ++h)
#pragma unroll
      for (int i = 0; i < kFeatureTiles; ++i) d[h][i][0] = d[h][i][1] = d[h][i][2] = d[h][i][3] = 0;
  }

  // Where in a stage this lane reads; the other addresses differ by an xor (a chunk) or a sum
  // (rows).
  __device__ static std::uint32_t read_at(int lane) {
    // tf32: row 2t, features 4g ..; 16-bit: the matrices of an ldmatrix are two chunks of 8
    // features in rows 0..7, then the same in rows 8..15.
    return kIsTf32<Input> ? chunk_at(lane % 4 * 2, lane / 4, kRowBytes)
                          : chunk_at(lane % 8 + lane / 16 * 8, lane / 8 % 2, kRowBytes);
  }

  // `stage` is a multiple of the stage's size.
  __device__ void add(const Fragment<Input, kHeight>& a, std::uint32_t stage,
                      std::uint32_t read_at) {
    const std::uint32_t at = stage + read_at;
    if constexpr (kIsTf32<Input>) {
#pragma unroll
      for (int k = 0; k < 2; ++k)
#pragma unroll
        for (int q = 0; q < kFeatureTiles / 2; ++q) {
          // Features 4g .. 4g + 3 of 32: m rows g and g + 8 of two feature tiles.
          const std::uint32_t from = at + k * 8 * kRowBytes + q * 128;
          const uint4 r0 = load_shared_16(from), r1 = load_shared_16((from ^ 16) + kRowBytes);
#pragma unroll
          for (int h = 0; h < kHeight; ++h) {
            const auto& v = a.x[k][h];
            mma::multiply_add(Input{}, d[h][2 * q], r0.x, r0.y, r1.x, r1.y, v[0], v[1]);
            mma::multiply_add(Input{}, d[h][2 * q + 1], r0.z, r0.w, r1.z, r1.w, v[0], v[1]);
          }
        }
    } else {
#pragma unroll
      for (int i = 0; i < kFeatureTiles; ++i) {
        std::uint32_t b[4];
        load_matrices_transposed(b, at ^ i * 32);
#pragma unroll
        for (int h = 0; h < kHeight; ++h)
          mma::multiply_add(Input{}, d[h][i], b[0], b[1], b[2], b[3], a.x[0][h][0], a.x[1][h][0]);
      }
    }
  }

  // visit(index, float (&)[4]) for all sums, in a fixed order.
  template <class Visit>
  __device__ void for_each_quad(Visit visit) {
#pragma unroll
    for (int h = 0; h < kHeight; ++h)
#pragma unroll
      for (int i = 0; i < kFeatureTiles; ++i) visit(h * kFeatureTiles + i, d[h][i]);
  }

  // store(block row, row of the block, first feature, four sums), whole 32-byte sectors per
  // instruction. A lane has the same row of a block, block_row(lane), in all its calls for 16-bit
  // input, and two rows for tf32.
  template <class Store>
  __device__ void for_each_vector(int lane, Store store) const {
    const int g = lane / 4;
#pragma unroll
    for (int h = 0; h < kHeight; ++h) {
      if constexpr (kIsTf32<Input>) {
#pragma unroll
        for (int i = 0; i < kFeatureTiles; i += 2)
#pragma unroll
          for (int p = 0; p < 2; ++p)
            store(h, p, i * 16 + 4 * g,
                  make_float4(d[h][i][p], d[h][i][p + 2], d[h][i + 1][p], d[h][i + 1][p + 2]));
      } else {
        // A lane holds feature g of two chunks for rows 2t and 2t + 1. Lanes g ^ 1 trade rows, then
        // g ^ 2 trade chunks: four neighbouring features of one row.
        const bool odd = g % 2 != 0, second = g / 2 % 2 != 0;
#pragma unroll
        for (int i = 0; i < kFeatureTiles; ++i) {
          float low[2], high[2];
#pragma unroll
          for (int c = 0; c < 2; ++c) {
            const float keep = odd ? d[h][i][2 * c + 1] : d[h][i][2 * c];
            const float get =
                __shfl_xor_sync(kFullWarp, odd ? d[h][i][2 * c] : d[h][i][2 * c + 1], 4);
            low[c] = odd ? get : keep;
            high[c] = odd ? keep : get;
          }
          const float x = __shfl_xor_sync(kFullWarp, second ? low[0] : low[1], 8);
          const float y = __shfl_xor_sync(kFullWarp, second ? high[0] : high[1], 8);
          store(h, 0, i * 16 + second * 8 + g / 4 * 4,
                second ? make_float4(x, y, low[1], high[1]) : make_float4(low[0], high[0], x, y));
        }
      }
    }
  }

  // Row of its block that `store` of for_each_vector means, by its second argument.
  __device__ static int block_row(int lane, int which) {
    return lane % 4 * 2 + (kIsTf32<Input> ? which : lane / 4 % 2);
  }
};

}  // namespace spmmbench::rsh
