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
#include "common/panel_sums.cuh"
#include "ptx/cuda_ptx.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/keep.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/wgmma.cuh"

namespace spmmbench::bitmap_dense {

inline constexpr int kWarpgroup = 128;
inline constexpr int kStageK = 64;  // 16-bit values in a 128-byte line
inline constexpr int kLineBytes = 128;
inline constexpr int kRowFragments = 1;  // of 16 rows, a panel
// The cost of a piece: it begins with loads that wait for each other and ends with a sum that goes
// to memory, about as long as a unit of 256 columns takes. Counting it gains 2 to 4 % on 18944 x
// 3584 (docs/decisions/bitmap-dense.md).
inline constexpr int kPieceUnits = 1;
// The cost of joining a part of a panel's sums, with tiles of 256 columns: 6 us, while a unit takes
// 2.8 us (docs/decisions/bitmap-dense.md).
inline constexpr int kPartUnits = 2;
inline constexpr int kProducerRegisters = 24;
// What a multiprocessor of compute capability 9.0 has, all for one CTA (CUDA C Programming Guide).
inline constexpr int kRegistersMost = 65536, kSharedMost = 227 * 1024;
inline constexpr int kStagesMost = 5;  // of B

template <class T, Layout kLayout, int kTileColumns, class QueuesType>
struct Shape {
  using Element = T;
  using Queues = QueuesType;
  using Reader = QueueReader<Queues>;
  static constexpr Layout kLayoutB = kLayout;
  static constexpr int kTileN = kTileColumns;
  // As many warps decode as registers and shared memory allow.
  static constexpr int kWarpgroups = kTileN == 256 ? 2 : kTileN >= 64 ? 3 : 4;
  static constexpr int kWarps = 4 * kWarpgroups;  // that multiply
  static constexpr int kThreads = (kWarpgroups + 1) * kWarpgroup;
  static constexpr int kConsumerRegisters = kWarpgroups == 2 ? 240 : kWarpgroups == 3 ? 160 : 112;
  // A CTA starts with so many registers a thread, a multiple of 8, and moves them among its
  // warpgroups. If these ask for more, it waits forever.
  static constexpr int kStartRegisters = kRegistersMost / kThreads / 8 * 8;
  static_assert(kWarpgroups * kConsumerRegisters + kProducerRegisters <=
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
  static_assert((2 * kStages + kWarps * kWarpBarriers) * sizeof(std::uint64_t) <= kConstantsAt);
  static constexpr auto kMajor = kLayout == Layout::col_major ? ptx::Major::k : ptx::Major::mn;
  static constexpr int kAccumulators = kTileN / 2;
};

template <class S>
__device__ void produce(const Arguments& args, const CUtensorMap& map_b, char* stages,
                        std::uint64_t* full, std::uint64_t* empty) {
  mbarrier::Cursor at;
  const int first_piece = args.piece_ptr[blockIdx.x], last_piece = args.piece_ptr[blockIdx.x + 1];
  PanelPiece piece = args.pieces[first_piece];
  ptx::griddepcontrol_wait();
  for (int p = first_piece; p < last_piece; ++p) {
    if (p > first_piece) piece = args.pieces[p];
    const int first_k = piece.first_step * S::kStepFragmentsK * 16;
    const int count = piece.steps / S::kStageSteps;
    for (int i = 0; i < count; ++i) {
      at.wait_empty(empty);
      char* const to = stages + at.stage * S::kStageBytes;
      std::uint64_t* const barrier = full + at.stage;
      mbarrier::arrive_expect(barrier, S::kStageBytes);
      for (int s = 0; s < S::kStageSteps; ++s) {
        const int k = first_k + (i * S::kStageSteps + s) * kStageK;
        char* const tile = to + s * S::kTileBytes;
        if constexpr (S::kLayoutB == Layout::col_major) {
          const std::int32_t from[2] = {k, piece.column};
          ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &map_b, from,
                                    barrier);
        } else {
          for (int j = 0; j < S::kTileLines / kStageK; ++j) {
            const std::int32_t from[2] = {piece.column + j * kStageK, k};
            ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global,
                                      tile + j * kStageK * kLineBytes, &map_b, from, barrier);
          }
        }
      }
      at.advance(S::kStages);
    }
  }
}

// The tile of B that a stage begins with. The shuffle tells the compiler that all lanes have the
// same descriptor, which `wgmma` wants in a register of the warp.
template <class S>
__device__ std::uint64_t descriptor_of_b(const char* stages, int stage) {
  constexpr int kGroup = 8 * kLineBytes;
  stage = __shfl_sync(kFullWarp, stage, 0);
  return ptx::wgmma_descriptor(stages + stage * S::kStageBytes, kStageK * kLineBytes, kGroup);
}

// One decoded step: the rows times the columns of the tile `b`.
template <class S>
__device__ void multiply(float (&acc)[S::kAccumulators],
                         const std::uint32_t (&a)[BitmapPanels::kStepRegisters], std::uint64_t b) {
  constexpr int kAdvance = S::kMajor == ptx::Major::k ? 32 : 16 * kLineBytes;
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < S::kStepFragmentsK; ++k)
    ptx::wgmma_mma_async<typename S::Element, S::kMajor, S::kTileN>(
        acc, a[4 * k], a[4 * k + 1], a[4 * k + 2], a[4 * k + 3],
        ptx::wgmma_descriptor_advance(b, k * kAdvance));
  ptx::wgmma_commit_group();
}

template <class S>
__device__ void consume(const Arguments& args, const DenseView& c, char* shared, char* stages,
                        std::uint64_t* full, std::uint64_t* empty, std::uint64_t* ring_full) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  typename S::Reader reader(shared + S::kRingsAt + warp * S::Reader::kWarpBytes,
                            ring_full + warp * kWarpBarriers, shared + S::kConstantsAt);
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
          at.wait_full(full);
          b = descriptor_of_b<S>(stages, at.stage);
        }
        multiply<S>(acc[0], a[s % 2],
                    ptx::wgmma_descriptor_advance(b, s % S::kStageSteps * S::kTileBytes));
        reader.release();
        ptx::wgmma_wait_group<1>();  // the step before: its registers and its stage are free
        if (finished >= 0 && lane == 0) ptx::mbarrier_arrive(empty + finished);
        finished = -1;
        if (s % S::kStageSteps == S::kStageSteps - 1) {
          finished = at.stage;
          at.advance(S::kStages);
        }
      }
    }
    ptx::wgmma_wait_group<0>();
    ptx::keep_in_registers(acc[0]);
    if (finished >= 0 && lane == 0) ptx::mbarrier_arrive(empty + finished);
    if (next_piece > p) reader.begin(args, next);  // it begins while the sums are stored
    if (piece.parts == 1 || join_parts(args.workspace, piece, warp, acc))
      store_panel(c, piece, warp, acc);
  }
}

template <class S>
__global__ void __launch_bounds__(S::kThreads, 1)
    multiply_panels(const __grid_constant__ Arguments args,
                    const __grid_constant__ CUtensorMap map_b,
                    const __grid_constant__ DenseView c) {
  extern __shared__ __align__(1024) char shared[];
  auto* const full = reinterpret_cast<std::uint64_t*>(shared);
  std::uint64_t* const empty = full + S::kStages;
  std::uint64_t* const ring_full = empty + S::kStages;
  char* const stages = shared + S::kBarrierBytes;
  if (threadIdx.x == 0) {
    mbarrier::init(full, empty, S::kStages, 1, S::kWarps);
    mbarrier::init(ring_full, S::kWarps * kWarpBarriers, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  TakerOf<typename S::Queues>::write_constants(shared + S::kConstantsAt);
  __syncthreads();
  ptx::griddepcontrol_launch_dependents();
  if (threadIdx.x >= S::kWarpgroups * kWarpgroup) {
    ptx::setmaxnreg_dec<kProducerRegisters>();
    if (threadIdx.x == S::kWarpgroups * kWarpgroup) produce<S>(args, map_b, stages, full, empty);
  } else {
    ptx::setmaxnreg_inc<S::kConsumerRegisters>();
    consume<S>(args, c, shared, stages, full, empty, ring_full);
  }
}

}  // namespace spmmbench::bitmap_dense
