#pragma once
// A warp multiplies 64 rows of A by 8 or 16 columns of B with mma.m16n8k16.
//
//   CTA: kWarps panels of 64 rows, the same slots of k
//     B: chunks in shared memory, in the order of the fragments
//     warp w: streams of panel w --scatter--> ring of slots --ldmatrix--> A fragments, mma
//   sums: to C where one CTA has the whole row, else to a part in the workspace; the last CTA to
//   arrive adds the parts in a fixed order, so the result does not depend on which CTA is last

#include "common/panel_sums.cuh"
#include "ptx/cuda_ptx.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"
#include "scatter_mma/chunk_ring.cuh"
#include "scatter_mma/pack.cuh"
#include "scatter_mma/stream_reader.cuh"

namespace spmmbench::scatter_mma {

inline constexpr int kWarps = 6;        // of a CTA
inline constexpr int kBlocksPerSm = 2;  // what the rings leave room for
// A piece begins with three loads that wait for each other and ends with a sum that goes to memory:
// 1.5 to 2 us, where a slot of all warps takes 0.75 to 1 us (clock reads,
// docs/log/bitmap-dense.md).
inline constexpr int kPieceSlots = 2;
inline constexpr int kLeastSlots = 8;  // of a CTA: better than two (docs/log/bitmap-dense.md)
inline constexpr int kFragment = 16;   // rows and columns of an A fragment
inline constexpr int kRowFragments = GapStreams::kPanelRows / kFragment;
inline constexpr int kSlotSteps = GapStreams::kSlotCols / kFragment;  // of k

template <int kTilesN>
struct Shape {
  static constexpr int kSlotBBytes = kSlotSteps * kTilesN * 32 * 8;  // B of a slot
  static constexpr int kChunkSpace = 16384;  // what the rings leave, for all chunks
  static constexpr int kChunkSlots = 4;      // fewer come too late (docs/log/bitmap-dense.md)
  static constexpr int kStages = kChunkSpace / (kChunkSlots * kSlotBBytes);
  static constexpr int kBarrierBytes = 512;
  static constexpr int kRingsAt = kBarrierBytes + kChunkSpace;
  static constexpr int kSharedBytes = kRingsAt + kWarps * kRingBytes;
  static constexpr int kStageBytes = 2 * sizeof(std::uint64_t) + sizeof(unsigned);  // of ChunkRing
  static_assert(kStages >= 2 && kStages * kStageBytes <= kBarrierBytes);
  // Of a multiprocessor of compute capability 9.0, and what the system takes of it for a CTA (CUDA
  // C Programming Guide, compute capabilities).
  static constexpr int kSharedPerSm = 228 * 1024, kReserved = 1024;
  static_assert(kBlocksPerSm * (kSharedBytes + kReserved) <= kSharedPerSm);
};

// A slot of A times its rows of B.
template <class T, int kTilesN>
__device__ void multiply_slot(float (&acc)[kRowFragments][4 * kTilesN], std::uint32_t slot,
                              const std::uint32_t (&line)[kSlotSteps], const uint2* b) {
#pragma unroll
  for (int k = 0; k < kSlotSteps; ++k) {
    uint2 columns[kTilesN];
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) columns[j] = b[(k * kTilesN + j) * 32];
#pragma unroll
    for (int f = 0; f < kRowFragments; ++f) {
      constexpr int kFragmentBytes = kSlotBytes / kRowFragments;
      std::uint32_t a[4];
      ptx::ldmatrix_x4(a, slot + line[k] + f * kFragmentBytes);
#pragma unroll
      for (int j = 0; j < kTilesN; ++j)
        ptx::mma_m16n8k16(T{}, reinterpret_cast<float(&)[4]>(acc[f][4 * j]), a[0], a[1], a[2], a[3],
                          columns[j].x, columns[j].y);
    }
  }
}

// `b`: packed, `tile_bytes` for each tile of columns.
template <class T, int kTilesN>
__global__ void __launch_bounds__(32 * kWarps, kBlocksPerSm)
    multiply(const __grid_constant__ Arguments args, const char* b, std::int64_t tile_bytes,
             const __grid_constant__ DenseView c) {
  using S = Shape<kTilesN>;
  extern __shared__ __align__(1024) char shared[];
  auto* const full = reinterpret_cast<std::uint64_t*>(shared);
  std::uint64_t* const empty = full + S::kStages;
  auto* const done = reinterpret_cast<unsigned*>(empty + S::kStages);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if (threadIdx.x == 0) {
    mbarrier::init(full, empty, S::kStages, 1, kWarps);
    for (int stage = 0; stage < S::kStages; ++stage) done[stage] = 0;
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  const auto ring = static_cast<std::uint32_t>(
      __cvta_generic_to_shared(shared + S::kRingsAt + warp * kRingBytes));
  const auto clear = [&](std::uint32_t from, int bytes) {
#pragma unroll
    for (int at = 0; at < bytes; at += 32 * 16) ptx::st_shared_v4_zero(from + at + lane * 16);
  };
  clear(ring, kRingBytes);
  __syncthreads();
  ptx::griddepcontrol_launch_dependents();

  // ldmatrix: lanes 0 .. 15 give rows 0 .. 15 of the first 8 columns of a step, the others those of
  // the last 8, in the swizzle of a slot.
  std::uint32_t line[kSlotSteps];
#pragma unroll
  for (int k = 0; k < kSlotSteps; ++k)
    line[k] = lane % 16 * (kLineBytes / 2) + ((2 * k + lane / 16) ^ (lane % 16 / 2 % 4)) * 16;

  const int first_piece = args.piece_ptr[blockIdx.x], last_piece = args.piece_ptr[blockIdx.x + 1];
  ChunkRing<kWarps, S::kStages, S::kChunkSlots, S::kSlotBBytes> chunks(
      shared + S::kBarrierBytes, full, empty, done, args.pieces, first_piece, last_piece, b,
      tile_bytes);
  StreamReader reader(ring);
  int ring_slot = 0;
  for (int p = first_piece; p < last_piece; ++p) {
    const PanelPiece piece = args.pieces[p];
    reader.begin(args, args.segments[piece.first_segment + warp], ring_slot);
    if (p == first_piece) {
      ptx::griddepcontrol_wait();
      chunks.start();
    }
    float acc[kRowFragments][4 * kTilesN] = {};
    int left = piece.steps, in_chunk = 0;
    const uint2* b_slot = nullptr;
    reader.run(piece.steps, [&] {
      if (in_chunk == 0) b_slot = reinterpret_cast<const uint2*>(chunks.next()) + lane;
      __syncwarp();
      const std::uint32_t slot = ring + ring_slot * kSlotBytes;
      multiply_slot<T, kTilesN>(acc, slot, line, b_slot);
      __syncwarp();
      clear(slot, kSlotBytes);
      __syncwarp();
      ring_slot = (ring_slot + 1) % GapStreams::kRingSlots;
      b_slot += kSlotSteps * kTilesN * 32;
      --left;
      if (++in_chunk == S::kChunkSlots || left == 0) {
        chunks.release();
        in_chunk = 0;
      }
    });
    if (piece.parts == 1 || join_parts(args.workspace, piece, warp, acc))
      store_panel(c, piece, warp, acc);
  }
}

}  // namespace spmmbench::scatter_mma
