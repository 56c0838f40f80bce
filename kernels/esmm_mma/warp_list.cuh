#pragma once
// The product over lists. Each warp owns a 32 x 32 tile of C, lists the k-indices that survive in
// it and multiplies over that list with mma. Warps share nothing and never wait for each other: a
// tile loads only what survives in it, and zeros are multiplied only to fill its last stage.
//
//   shared memory of a warp:  ring[kStages][k of a stage][line of A | line of B]   list
//
// A stage is one step of mma: 16 k in 16 bits, 8 in tf32. A line is 32 elements at one k. What a
// lane reads:
//
//   16 bits   ldmatrix turns 8 x 8 elements, rows of which are pieces (16 bytes) of lines
//   tf32      four neighbours of one line at once; hence row g of the first matrix of A is row
//             4g of the tile, of the second 4g + 1, and so on; columns of B likewise

#include <cstdint>

#include "common/tile_store.cuh"
#include "esmm/operands.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/ld_shared.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"
#include "spmmbench/precision.hpp"

namespace spmmbench::esmm_mma {

using esmm::kChunk;
using esmm::kChunkWords;
using esmm::kCopyBytes;
using esmm::kStrip;
using esmm::Operands;

template <class Input_>
struct Shape {
  using Input = Input_;
  static constexpr bool kTf32 = std::is_same_v<Input, ptx::Tf32>;
  static constexpr int kStepK = kTf32 ? 8 : 16;           // of mma
  static constexpr int kLine = kStrip * (kTf32 ? 4 : 2);  // bytes
  static constexpr int kPair = 2 * kLine;                 // a line of A and one of B
  static constexpr int kPieces = kPair / kCopyBytes;      // of a pair
  static constexpr int kStageBytes = kStepK * kPair;
  static constexpr int kCopies = kStageBytes / kCopyBytes / 32;  // of a lane
  static constexpr int kStages = 3;
  static constexpr int kRingBytes = kStages * kStageBytes;
  static constexpr int kWarpRows = 2;  // warps of a CTA: 2 x 2 tiles of C
  static constexpr int kWarpCols = 2;
  static constexpr int kWarps = kWarpRows * kWarpCols;
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kCtas = 5;                            // on a multiprocessor
  static constexpr int kListCapacity = kChunk + 2 * kStepK;  // what was left, a chunk, padding
  static constexpr int kSharedBytes = kWarps * (kRingBytes + kListCapacity * 4);

  static std::int64_t grid(const Operands& op) {
    return std::int64_t{esmm::ceil_div(op.strips_a, kWarpRows)} *
           esmm::ceil_div(op.strips_b, kWarpCols);
  }
  // A line's piece is kept at another place of it, so that what lanes read at once lies in
  // different banks: 8 lines of one piece, in tf32 4 lines of two.
  __device__ static int place(int line, int piece) {
    return line * kPair + ((piece ^ (kTf32 ? line % 4 * 2 : line % 8)) << 4);
  }
};

// The indices of a tile, chunk by chunk.
template <class S>
class List {
 public:
  __device__ List(const Operands& op, int strip_a, int strip_b, int lane, int* list)
      : list_(list),
        lane_(lane),
        chunks_(op.words / kChunkWords),
        a_(op.a_bits + std::int64_t{strip_a} * op.words + lane),
        b_(op.b_bits + std::int64_t{strip_b} * op.words + lane),
        word_(*a_ & *b_) {}

  // The next kStepK, behind the last ones -1; null when there are none.
  __device__ const int* next() {
    if (count_ - next_ < S::kStepK && chunk_ < chunks_) refill();
    if (next_ >= count_) return nullptr;
    const int* const step = list_ + next_;
    next_ += S::kStepK;
    return step;
  }

 private:
  __device__ void refill() {
    while (count_ - next_ < S::kStepK && chunk_ < chunks_) {
      const int left = count_ - next_;
      const int kept = lane_ < left ? list_[next_ + lane_] : 0;
      __syncwarp();
      if (lane_ < left) list_[lane_] = kept;
      count_ = esmm::append_set_bits(word_, chunk_ * kChunk, lane_, list_, left);
      next_ = 0;
      if (++chunk_ < chunks_) word_ = a_[chunk_ * kChunkWords] & b_[chunk_ * kChunkWords];
      else if (lane_ < S::kStepK) list_[count_ + lane_] = -1;
      __syncwarp();
    }
  }

  int* list_;
  int lane_, chunks_;
  const std::uint32_t *a_, *b_;  // of this lane
  std::uint32_t word_;           // of the next chunk
  int chunk_ = 0, next_ = 0, count_ = 0;
};

// A lane's copies of a stage: always the same piece of four neighbours of the list.
template <class S>
class Gather {
 public:
  __device__ Gather(const Operands& op, int strip_a, int strip_b, int lane)
      : first_(lane / S::kPieces * S::kCopies) {
    const int piece = lane % S::kPieces;
    const bool is_a = piece < S::kPieces / 2;
    // Behind the end of B's rows the address is clamped: what it yields belongs outside C.
    const std::int64_t in_b =
        std::int64_t{strip_b} * S::kLine + (piece - S::kPieces / 2) * kCopyBytes;
    from_ = is_a ? static_cast<const char*>(op.a_lines) + std::int64_t{strip_a} * op.k * S::kLine +
                       piece * kCopyBytes
                 : static_cast<const char*>(op.b) +
                       min(in_b, static_cast<std::int64_t>(op.ldb_bytes) - kCopyBytes);
    pitch_ = is_a ? S::kLine : op.ldb_bytes;
#pragma unroll
    for (int i = 0; i < S::kCopies; ++i) to_[i] = S::place(first_ + i, piece);
  }
  __device__ void copy(const int* list, std::uint32_t stage) const {
    static_assert(S::kCopies == 4);
    const int4 four = *reinterpret_cast<const int4*>(list + first_);
    const int k[S::kCopies] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int i = 0; i < S::kCopies; ++i)
      ptx::cp_async_cg_16_unless_negative(
          k[i], stage + to_[i], from_ + std::uint64_t{static_cast<unsigned>(k[i])} * pitch_);
  }

 private:
  int first_;
  const char* from_;
  std::uint32_t pitch_;  // bytes from one k to the next
  std::uint32_t to_[S::kCopies];
};

// A lane's part of a tile: [16 rows][8 columns] as mma leaves them.
using Sums = float[2][4][4];

template <class S>
class Multiplier {
 public:
  __device__ explicit Multiplier(int lane)
      : at_(S::kTf32 ? S::place(lane % 4, lane / 4)
                     : S::place(lane / 16 * 8 + lane % 8, lane / 8 % 2)) {}

  // sums += a stage.
  __device__ void add(Sums& sums, std::uint32_t stage) const {
    if constexpr (S::kTf32) add_tf32(sums, stage + at_);
    else add_16_bit(sums, stage + at_);
  }

 private:
  __device__ static void add_16_bit(Sums& sums, std::uint32_t at) {
    constexpr int kTwoPieces = 2 * kCopyBytes;  // the place of a piece is a matter of its bits
    std::uint32_t a[2][4], b[2][4];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      ptx::ldmatrix_x4_trans(a[i], at ^ i * kTwoPieces);
      ptx::ldmatrix_x4_trans(b[i], at ^ (S::kLine + i * kTwoPieces));
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        ptx::mma_m16n8k16(typename S::Input{}, sums[i][j], a[i][0], a[i][1], a[i][2], a[i][3],
                          b[j / 2][j % 2], b[j / 2][j % 2 + 2]);
  }
  __device__ static void add_tf32(Sums& sums, std::uint32_t at) {
    constexpr int kFurther = 4 * S::kPair;  // 4 of k
    std::uint32_t a[2][4], b[2][4];         // of k and k + 4
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint4 of_a = ptx::ld_shared_v4(at + i * kFurther);
      const uint4 of_b = ptx::ld_shared_v4(at + i * kFurther + S::kLine);
      a[i][0] = of_a.x, a[i][1] = of_a.y, a[i][2] = of_a.z, a[i][3] = of_a.w;
      b[i][0] = of_b.x, b[i][1] = of_b.y, b[i][2] = of_b.z, b[i][3] = of_b.w;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        ptx::mma_m16n8k8(typename S::Input{}, sums[i][j], a[0][2 * i], a[0][2 * i + 1], a[1][2 * i],
                         a[1][2 * i + 1], b[0][j], b[1][j]);
  }

  std::uint32_t at_;  // of the lane's first read in a stage
};

// Four neighbours of a row of C. Those at or after n are padding.
__device__ inline void store_four(const Operands& op, ElementType type, std::int64_t row,
                                  std::int64_t column, float4 x) {
  if (row >= op.m || column >= op.n) return;
  const std::int64_t at = row * op.ldc + column;
  if (type == ElementType::f32)
    __stcs(reinterpret_cast<float4*>(static_cast<float*>(op.c) + at), x);
  else
    __stcs(reinterpret_cast<uint2*>(static_cast<std::uint16_t*>(op.c) + at),
           make_uint2(tile_store::pack16(x.x, x.y, type), tile_store::pack16(x.z, x.w, type)));
}

template <class S>
__device__ void store_tile(const Operands& op, ElementType type, int strip_a, int strip_b, int lane,
                           const Sums& sums) {
  const std::int64_t row = std::int64_t{strip_a} * kStrip, column = std::int64_t{strip_b} * kStrip;
  const int g = lane / 4, t = lane % 4;
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const float(&s)[4][4] = sums[i];
        const int x = 2 * half, y = x + 1;
        if constexpr (S::kTf32) {
          store_four(op, type, row + 4 * g + 2 * i + half, column + 8 * t + 4 * j,
                     make_float4(s[0][x + j], s[1][x + j], s[2][x + j], s[3][x + j]));
        } else {
          // A lane has two neighbours of each of two matrices; it trades with the next lane.
          const float(&low)[4] = s[2 * j], (&high)[4] = s[2 * j + 1];
          const bool odd = t % 2 == 1;
          const float other_x = __shfl_xor_sync(~0U, odd ? low[x] : high[x], 1);
          const float other_y = __shfl_xor_sync(~0U, odd ? low[y] : high[y], 1);
          store_four(op, type, row + 16 * i + 8 * half + g,
                     column + 16 * j + (odd ? 8 : 0) + t / 2 * 4,
                     odd ? make_float4(other_x, other_y, high[x], high[y])
                         : make_float4(low[x], low[y], other_x, other_y));
        }
      }
}

template <class S>
__global__ void __launch_bounds__(S::kThreads, S::kCtas)
    warp_list(const Operands op, ElementType type_c) {
  extern __shared__ __align__(1024) char shared[];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int2 block =
      esmm::raster(static_cast<int>(blockIdx.x), esmm::ceil_div(op.strips_a, S::kWarpRows),
                   esmm::ceil_div(op.strips_b, S::kWarpCols));
  const int strip_a = block.x * S::kWarpRows + warp / S::kWarpCols;
  const int strip_b = block.y * S::kWarpCols + warp % S::kWarpCols;
  if (strip_a >= op.strips_a || strip_b >= op.strips_b) return;

  const std::uint32_t ring =
      static_cast<std::uint32_t>(__cvta_generic_to_shared(shared)) + warp * S::kRingBytes;
  List<S> list(
      op, strip_a, strip_b, lane,
      reinterpret_cast<int*>(shared + S::kWarps * S::kRingBytes) + warp * S::kListCapacity);
  const Gather<S> gather(op, strip_a, strip_b, lane);
  const Multiplier<S> multiplier(lane);
  const auto advance = [&](std::uint32_t& stage) {
    stage += S::kStageBytes;
    if (stage == ring + S::kRingBytes) stage = ring;
  };
  std::uint32_t filled = ring, read = ring;
  int pending = 0;  // stages filled and not yet multiplied
  const auto fill = [&] {
    if (const int* const step = list.next()) {
      gather.copy(step, filled);
      advance(filled);
      ++pending;
    }
    ptx::cp_async_commit_group();
  };

  Sums sums = {};
#pragma unroll 1
  for (int i = 0; i < S::kStages - 1; ++i) fill();
#pragma unroll 1
  for (; pending > 0; --pending) {
    ptx::cp_async_wait_group<S::kStages - 2>();
    __syncwarp();  // the stage is visible, and no lane still reads the one filled next
    fill();
    multiplier.add(sums, read);
    advance(read);
  }
  store_tile<S>(op, type_c, strip_a, strip_b, lane, sums);
}

}  // namespace spmmbench::esmm_mma
