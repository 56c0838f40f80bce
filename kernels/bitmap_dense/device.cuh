#pragma once
// Two to four warpgroups multiply with wgmma, A decoded into registers, B by TMA. Where several
// CTAs share a panel, their sums wait in a workspace; the last CTA to arrive adds the parts in
// a fixed order, so the result does not depend on which CTA is last.
//
//   producer warp                 ring of stages            warp w of every warpgroup but the last
//   B tile, 64 of k x kTileN  ->  [B][B][B]...              own ring of queues: decode a step
//   in the 128-byte swizzle                                 (16 rows x 64 of k) while the step
//                                                           before it is multiplied
//
// A warpgroup's 64 rows are four 16-row fragments, one of every warp, so a warp decodes and stores
// 16 consecutive rows, one panel.

#include <cuda.h>

#include <algorithm>

#include "bitmap_dense/queue_reader.cuh"
#include "bitmap_dense/tiling.hpp"
#include "common/hopper_ring.cuh"
#include "common/panel_sums.cuh"
#include "ptx/cuda_ptx.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/keep.cuh"
#include "ptx/wgmma.cuh"

namespace spmmbench::bitmap_dense {

inline constexpr int kWarpgroup = 128;
inline constexpr int kStageK = 64;  // 16-bit values in a 128-byte line; 128 in 8 bits
inline constexpr int kLineBytes = 128;
inline constexpr int kRowFragments = 1;  // of 16 rows, a panel
// What a multiprocessor of compute capability 9.0 has, all for one CTA (CUDA C Programming Guide).
inline constexpr int kRegistersMost = 65536, kSharedMost = 227 * 1024;
inline constexpr int kStagesMost = 5;  // of B

template <class T, Layout kLayout, int kTileColumns, class QueuesType>
struct Shape {
  using Element = T;
  using Queues = QueuesType;
  using Reader = QueueReader<Queues>;
  // In fp8 tensor cores keep 14 bits of a sum: those of each step are added in fp32.
  static constexpr bool kFp8 = std::is_same_v<T, __nv_fp8_e4m3>;
  static_assert(!kFp8 || kLayout == Layout::col_major, "wgmma takes fp8 along K");
  static constexpr int kColumns = kFp8 ? 2 : 1;  // of A, where 16-bit values have one
  static constexpr Layout kLayoutB = kLayout;
  static constexpr int kTileN = kTileColumns;
  static constexpr int kWarpgroups = warpgroups_of(kTileN);
  static constexpr int kWarps = 4 * kWarpgroups;  // that multiply
  static constexpr int kConsumers = 32 * kWarps;  // threads
  static constexpr int kThreads = kConsumers + kWarpgroup;
  static constexpr RoleRegisters kRoleRegisters{.producer = 24,
                                                .consumer = kWarpgroups == 2   ? 240
                                                            : kWarpgroups == 3 ? 160
                                                                               : 112};
  // A CTA starts with this many registers a thread, a multiple of 8, and moves them among its
  // warpgroups. If these ask for more, it waits forever.
  static constexpr int kStartRegisters = kRegistersMost / kThreads / 8 * 8;
  static_assert(kWarpgroups * kRoleRegisters.consumer + kRoleRegisters.producer <=
                (kWarpgroups + 1) * kStartRegisters);
  static constexpr int kStepFragmentsK = BitmapPanels::kStepFragments;
  // Row-major B is copied in lines of 64 columns: a narrow tile has columns that are not used.
  static constexpr int kTileLines =
      kLayout == Layout::col_major || kTileN >= kStageK ? kTileN : kStageK;
  static constexpr int kTileBytes = kTileLines * kLineBytes;  // of a step
  // A stage of B. A narrow one has several steps, so that warps wait for it less often.
  static constexpr int kNarrowBytes = Queues::kPairs ? 8192 : 4096;
  static constexpr int kStageSteps = kTileN >= 128                               ? 1
                                     : kTileN == 64 || kTileBytes > kNarrowBytes ? 2
                                                                                 : 4;
  static constexpr int kStageBytes = kStageSteps * kTileBytes;
  // Barriers, and what the takers read.
  static constexpr int kBarrierBytes = 1024;
  static constexpr int kConstantsAt = kBarrierBytes - TakerOf<Queues>::kConstantBytes;
  static constexpr int kRoom = kSharedMost - kBarrierBytes - kWarps * Reader::kWarpBytes;
  static constexpr int kStages = std::min(kStagesMost, kRoom / kStageBytes);
  static constexpr int kRingsAt = kBarrierBytes + kStages * kStageBytes;
  static constexpr int kSharedBytes = kRingsAt + kWarps * Reader::kWarpBytes;
  static_assert(kStages >= 2);
  using Ring = HopperRing<kStages, kStageBytes>;
  struct Barriers {
    RingBarriers<kStages> ring;
    std::uint64_t queues[kWarps][kWarpBarriers];  // of each warp's own rings
  };
  static_assert(sizeof(Barriers) <= kConstantsAt);
  static constexpr auto kMajor = kLayout == Layout::col_major ? ptx::Major::k : ptx::Major::mn;
  static constexpr int kAccumulators = kTileN / 2;
};

// What the producer loads: the tiles of B of a stage. The warps that multiply load A themselves.
template <class S>
struct Loads {
  const Arguments& args;
  const CUtensorMap& map_b;

  __device__ int first() const { return args.piece_ptr[blockIdx.x]; }
  __device__ int last() const { return args.piece_ptr[blockIdx.x + 1]; }
  __device__ PanelPiece piece(int p) const { return args.pieces[p]; }
  __device__ int stages(const PanelPiece& piece) const { return piece.steps / S::kStageSteps; }

  __device__ void load_a(const PanelPiece&, int, char*, std::uint64_t*) const {}
  __device__ void load_b(const PanelPiece& piece, int i, char* stage, std::uint64_t* full) const {
    const int first_k = piece.first_step * S::kStepFragmentsK * 16 * S::kColumns;
    for (int s = 0; s < S::kStageSteps; ++s) {
      const int k = first_k + (i * S::kStageSteps + s) * kStageK * S::kColumns;
      char* const tile = stage + s * S::kTileBytes;
      if constexpr (S::kLayoutB == Layout::col_major) {
        const std::int32_t from[2] = {k, piece.column};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &map_b, from, full);
      } else {
        for (int j = 0; j < S::kTileLines / kStageK; ++j) {
          const std::int32_t from[2] = {piece.column + j * kStageK, k};
          ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global,
                                    tile + j * kStageK * kLineBytes, &map_b, from, full);
        }
      }
    }
  }
};

// The tile of B that a stage begins with. The shuffle tells the compiler that all lanes have the
// same descriptor, which `wgmma` wants in a register of the warp.
template <class S>
__device__ std::uint64_t descriptor_of_b(const typename S::Ring& ring, int stage) {
  constexpr int kGroup = 8 * kLineBytes;
  stage = __shfl_sync(kFullWarp, stage, 0);
  return ptx::wgmma_descriptor(ring.stage(stage), kStageK * kLineBytes, kGroup);
}

// One decoded step: the rows times the columns of the tile `b`, in fp8 without the sums before.
template <class S>
__device__ void multiply(float (&acc)[S::kAccumulators],
                         const std::uint32_t (&a)[BitmapPanels::kStepRegisters], std::uint64_t b) {
  constexpr int kAdvance = S::kMajor == ptx::Major::k ? 32 : 16 * kLineBytes;
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < S::kStepFragmentsK; ++k)
    ptx::wgmma_mma_async<typename S::Element, S::kMajor, S::kTileN>(
        acc, a[4 * k], a[4 * k + 1], a[4 * k + 2], a[4 * k + 3],
        ptx::wgmma_descriptor_advance(b, k * kAdvance), S::kFp8 && k == 0 ? 0 : 1);
  ptx::wgmma_commit_group();
}

template <int kCount>
__device__ void add_to(float (&acc)[kCount], float (&part)[kCount]) {
  ptx::keep_in_registers(part);
#pragma unroll
  for (int i = 0; i < kCount; ++i) acc[i] += part[i];
}

template <class S>
__device__ void consume(const Arguments& args, const DenseView& c, char* shared,
                        const typename S::Ring& ring, typename S::Barriers& barriers) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  typename S::Reader reader(shared + S::kRingsAt + warp * S::Reader::kWarpBytes,
                            barriers.queues[warp], shared + S::kConstantsAt);
  mbarrier::Cursor at;
  reader.begin(args, args.first_segments[blockIdx.x * S::kWarps + warp]);
  const int first_piece = args.piece_ptr[blockIdx.x], last_piece = args.piece_ptr[blockIdx.x + 1];
  ptx::griddepcontrol_wait();
  for (int p = first_piece; p < last_piece; ++p) {
    const PanelPiece piece = args.pieces[p];
    // The next piece's is read early, so that its copies can begin at once.
    const int next_piece = min(p + 1, last_piece - 1);
    const BitmapPanels::Segment next = args.segments[args.pieces[next_piece].first_range + warp];
    float acc[kRowFragments][S::kAccumulators];
#pragma unroll
    for (float& x : acc[0]) x = 0;
    [[maybe_unused]] float part[S::kAccumulators] = {};  // sums of the step before, in fp8
    std::uint32_t a[2][BitmapPanels::kStepRegisters];
    int finished = -1;  // the stage that the step before ended
    std::uint64_t b = 0;
    for (int step = 0; step < piece.steps; step += BitmapPanels::kGroupSteps) {
      const auto group = reader.next_group(step % BitmapPanels::kBlockSteps == 0);
#pragma unroll
      for (int s = 0; s < BitmapPanels::kGroupSteps; ++s) {
        if (s == 0) reader.look_up(reader.bits_of(group, 0));
        reader.fetch(a[s % 2]);
        if (s + 1 < BitmapPanels::kGroupSteps) reader.look_up(reader.bits_of(group, s + 1));
        if (s % S::kStageSteps == 0) {
          ring.wait_full(at);
          b = descriptor_of_b<S>(ring, at.stage);
        }
        // The step before was multiplied while this one was read.
        if constexpr (S::kFp8) {
          ptx::wgmma_wait_group<0>();
          add_to(acc[0], part);
        }
        multiply<S>(S::kFp8 ? part : acc[0], a[s % 2],
                    ptx::wgmma_descriptor_advance(b, s % S::kStageSteps * S::kTileBytes));
        reader.release();
        // Registers and stage of the step before become free.
        if constexpr (!S::kFp8) ptx::wgmma_wait_group<1>();
        if (finished >= 0) ring.release(finished);
        finished = -1;
        if (s % S::kStageSteps == S::kStageSteps - 1) {
          finished = at.stage;
          ring.advance(at);
        }
      }
    }
    ptx::wgmma_wait_group<0>();
    if constexpr (S::kFp8) add_to(acc[0], part);
    ptx::keep_in_registers(acc[0]);
    if (finished >= 0) ring.release(finished);
    if (next_piece > p) reader.begin(args, next);  // it begins while the sums are stored
    if (piece.parts == 1 || join_parts(args.workspace, piece, warp, acc)) {
      if constexpr (S::kFp8) {
#pragma unroll
        for (float& x : acc[0]) x *= args.scale;
      }
      store_panel(c, piece, warp, acc);
    }
  }
}

template <class S>
__global__ void __launch_bounds__(S::kThreads, 1)
    multiply_panels(const __grid_constant__ Arguments args,
                    const __grid_constant__ CUtensorMap map_b,
                    const __grid_constant__ DenseView c) {
  extern __shared__ __align__(1024) char shared[];
  auto& barriers = *reinterpret_cast<typename S::Barriers*>(shared);
  const typename S::Ring ring(barriers.ring, shared + S::kBarrierBytes);
  TakerOf<typename S::Queues>::write_constants(shared + S::kConstantsAt);
  ring.start(1, S::kWarps,
             [&] { mbarrier::init(barriers.queues[0], S::kWarps * kWarpBarriers, 1); });
  with_roles<S::kConsumers, S::kRoleRegisters>(
      [&](int thread) {
        if (thread == 0) ring.fill(Loads<S>{args, map_b});
      },
      [&] { consume<S>(args, c, shared, ring, barriers); });
}

}  // namespace spmmbench::bitmap_dense
