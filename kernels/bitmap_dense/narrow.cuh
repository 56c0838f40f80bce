#pragma once
// Few columns (N <= 32): a warp multiplies 64 rows with mma.m16n8k16, A decoded into its registers.
//
//   CTA: kWarps panels of 64 rows, the same steps of k
//     B: a chunk of k x all columns in shared memory, in the order of the fragments
//     warp w: ring of panel w's queues -> 4 fragments per step -> 4 x kTilesN mma
//   sums: to C where one CTA has the whole row, else to a part in the workspace; the last CTA to
//   arrive adds the parts in their order, so the result does not depend on which CTA is last

#include "bitmap_dense/queue_reader.cuh"
#include "common/bulk_ring.cuh"
#include "common/panel_sums.cuh"
#include "ptx/cuda_ptx.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/mma.cuh"

namespace spmmbench::bitmap_dense {

inline constexpr int kFragments = BitmapQueues::kStepFragments;

// B in the order of the fragments, zeros past its edges: of step s and column tile j at
// [s][j][lane], two words. One word per thread, K's pairs side by side where B's columns are.
template <class T>
__global__ void pack_b(const __grid_constant__ DenseView b, std::int64_t steps, int tiles,
                       std::uint32_t* to) {
  constexpr int kPairs = BitmapQueues::kFragment / 2;  // of k in a step
  ptx::griddepcontrol_launch_dependents();
  const auto* const from = static_cast<const std::uint16_t*>(b.data);
  const std::int64_t pairs = steps * kPairs, columns = tiles * std::int64_t{8};
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= pairs * columns) return;
  const bool by_column = b.layout == Layout::col_major;
  const std::int64_t n = by_column ? i / pairs : i % columns;
  const std::int64_t pair = by_column ? i % pairs : i / columns;
  const std::int64_t k = pair * 2;
  ptx::griddepcontrol_wait();
  std::uint32_t word = 0;
  if (n < b.cols && k < b.rows) {
    if (by_column) {
      word = *reinterpret_cast<const std::uint32_t*>(from + n * b.ld + k);
      if (k + 1 == b.rows) word &= 0xFFFFU;
    } else {
      word = from[k * b.ld + n];
      if (k + 1 < b.rows) word |= static_cast<std::uint32_t>(from[(k + 1) * b.ld + n]) << 16;
    }
  }
  const std::int64_t step = pair / kPairs;
  const auto t = pair % 4, half = pair % kPairs / 4;
  to[((step * tiles + n / 8) * 32 + n % 8 * 4 + t) * 2 + half] = word;
}

template <int kTilesN, int kWarps>
struct NarrowShape {
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kBarrierBytes = 1024;  // keeps the rings aligned
  static constexpr int kBuffers = 2;          // of B's chunks
  static constexpr int kChunkSteps = kTilesN == 4 ? 8 : 16;
  static constexpr int kStepBytes = kTilesN * 32 * 8;
  static constexpr int kChunkBytes = kChunkSteps * kStepBytes;
  static constexpr int kRingsAt = kBarrierBytes + kBuffers * kChunkBytes;
  static constexpr int kSharedBytes = kRingsAt + kWarps * kWarpRingBytes;
  static_assert(kChunkSteps % BitmapQueues::kBlockSteps == 0);
};

// The chunks of B of one piece, two at a time in shared memory. Thread 0 asks for them.
template <class Shape>
class ChunkReader {
 public:
  __device__ ChunkReader(char* shared, std::uint64_t* full, const char* b)
      : ring_(shared, full), b_(b) {}
  __device__ void begin(const PanelPiece& piece) {
    ring_.begin(b_ + std::int64_t{piece.first_step} * Shape::kStepBytes,
                piece.steps * Shape::kStepBytes);
    __syncthreads();  // the last piece's chunks were read
    ring_.request(threadIdx.x == 0);
  }
  // The next chunk. Called by all threads of the CTA; the chunk before it is no longer read.
  __device__ const char* next() {
    if (ring_.more()) {
      __syncthreads();
      ring_.request(threadIdx.x == 0);
    }
    return ring_.next();
  }

 private:
  BulkRing<Shape::kBuffers, Shape::kChunkBytes> ring_;
  const char* b_;
};

// The even columns of A, then the odd ones, each in the low halves of the operands. That takes
// twice as many mma, but no halves have to be joined.
template <class T, int kTilesN>
__device__ void multiply_step(float (&acc)[kFragments][4 * kTilesN], const Values& a,
                              const uint2* b) {
#pragma unroll
  for (int j = 0; j < kTilesN; ++j) {
    const uint2 even = b[j * 32], odd = make_uint2(even.x >> 16, even.y >> 16);
#pragma unroll
    for (int f = 0; f < kFragments; ++f) {
      float(&sums)[4] = reinterpret_cast<float(&)[4]>(acc[f][4 * j]);
      const std::uint32_t *const low = a.low + 4 * f, *const high = a.high + 4 * f;
      ptx::mma_m16n8k16(T{}, sums, low[0], low[1], low[2], low[3], even.x, even.y);
      ptx::mma_m16n8k16(T{}, sums, high[0], high[1], high[2], high[3], odd.x, odd.y);
    }
  }
}

template <class T, int kTilesN, int kWarps, int kBlocksPerSm>
__global__ void __launch_bounds__(32 * kWarps, kBlocksPerSm)
    narrow_kernel(const __grid_constant__ Arguments args, const char* b,
                  const __grid_constant__ DenseView c) {
  using Shape = NarrowShape<kTilesN, kWarps>;
  extern __shared__ __align__(1024) char shared[];
  auto* const barriers = reinterpret_cast<std::uint64_t*>(shared);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if (threadIdx.x == 0) {
    mbarrier::init(barriers, Shape::kBuffers + kWarps * BitmapQueues::kRingUnits, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  const std::uint32_t one = opaque_one(reinterpret_cast<std::uint32_t*>(
      barriers + Shape::kBuffers + kWarps * BitmapQueues::kRingUnits));
  ptx::griddepcontrol_launch_dependents();
  ChunkReader<Shape> chunks(shared + Shape::kBarrierBytes, barriers, b);
  QueueReader reader(shared + Shape::kRingsAt + warp * kWarpRingBytes,
                     barriers + Shape::kBuffers + warp * BitmapQueues::kRingUnits, one);
  const int last_piece = args.piece_ptr[blockIdx.x + 1];
  bool waited = false;
  for (int p = args.piece_ptr[blockIdx.x]; p < last_piece; ++p) {
    const PanelPiece piece = args.pieces[p];
    reader.begin(args, args.segments[piece.first_segment + warp]);
    if (!waited) ptx::griddepcontrol_wait();
    waited = true;
    chunks.begin(piece);
    float acc[kFragments][4 * kTilesN] = {};
    const uint2* b_step = nullptr;
    for (int step = 0; step < piece.steps; step += BitmapQueues::kGroupSteps) {
      if (step % Shape::kChunkSteps == 0)
        b_step = reinterpret_cast<const uint2*>(chunks.next()) + lane;
      const uint4 four = reader.next_group(step % BitmapQueues::kBlockSteps == 0);
      const std::uint32_t words[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int s = 0; s < BitmapQueues::kGroupSteps; ++s) {
        Values values;
        reader.fetch(words[s], values);
        multiply_step<T, kTilesN>(acc, values, b_step);
        b_step += kTilesN * 32;
        reader.release();
      }
    }
    if (piece.parts == 1 || join_parts(args.workspace, piece, warp, acc))
      store_panel(c, piece, warp, acc);
  }
}

}  // namespace spmmbench::bitmap_dense
