#pragma once
// The device side of two_four: a warp that copies, two warpgroups that multiply with wgmma.sp.
//
//   producer thread                ring of stages                    consumer warpgroup w = 0, 1
//   A: one bulk copy a panel   ->  +--------------------+-------+    for each block and panel of
//   B: TMA, boxes of 64 of k       | A: blocks by panel |   B   |      w: a word of indices per
//   x 16, 32 or 64 columns         | values and indices | boxes |      thread, two wgmma.sp
//                                  +--------------------+-------+    sums to C or to the workspace

#include <cuda.h>

#include "common/hopper_ring.cuh"
#include "common/panel_sums.cuh"
#include "ptx/cuda_ptx.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/keep.cuh"
#include "ptx/wgmma.cuh"
#include "ptx/wgmma_sp_e4m3.cuh"
#include "two_four/format.hpp"

namespace spmmbench::two_four {

inline constexpr int kWarpgroup = 128;
inline constexpr int kMmaBytes = 64;  // of B's K in one wgmma.sp
// What a part of a panel's sums costs to join, in units of 128 columns of A: 3 to 4 us, where a
// unit takes 1 us (docs/decisions/two-four.md).
inline constexpr int kPartUnits = 4;
inline constexpr RoleRegisters kRoleRegisters{.producer = 40, .consumer = 232};

struct Arguments {
  const PanelPiece* pieces;
  const std::int32_t* piece_ptr;  // of a block
  const char* blocks;             // of A
  std::int32_t panels, panel_blocks;
  PanelWorkspace workspace;
  float scale;  // of A times that of B, in fp8
};

template <class T, Layout kLayout, int kTileColumns>
struct Shape {
  using Element = T;
  using Block = TwoFourBlock<sizeof(T)>;
  static constexpr Layout kLayoutB = kLayout;
  static constexpr auto kMajor = kLayout == Layout::col_major ? ptx::Major::k : ptx::Major::mn;
  static constexpr int kTileN = kTileColumns;
  static constexpr int kWarpgroups = 2;  // that multiply
  static constexpr int kPanels = 2;      // of one warpgroup: at most 128 sums a thread
  static constexpr int kWarps = 4 * kWarpgroups;
  static constexpr int kConsumers = 32 * kWarps;  // threads
  static constexpr int kThreads = kConsumers + kWarpgroup;
  static constexpr int kWarpRows = 16 * kPanels;
  static constexpr int kRegisters = kTileN / 2;  // of sums, per panel
  static constexpr bool kPromotes = sizeof(T) == 1;
  static constexpr int kWords = Block::kIndexBytes / (4 * kWarpgroup);  // of indices, for a thread

  static constexpr int kStageBlocks = kTileN <= 64 ? 2 : 1;
  static constexpr int kUnitStages = TwoFour::kUnitBlocks / kStageBlocks;
  static constexpr int kPanelBytes = kStageBlocks * Block::kBlockBytes;
  static constexpr int kBytesA = kWarpgroups * kPanels * kPanelBytes;
  // A box of B is 128 bytes of k by 16, 32 or 64 columns; lines along k or along the columns.
  static constexpr int kBoxColumns = kTileN < 64 ? kTileN : 64;
  static constexpr int kBoxBytes = kBoxColumns * Block::kCols * static_cast<int>(sizeof(T));
  static constexpr int kLineBytes = kMajor == ptx::Major::k ? 128 : 2 * kBoxColumns;
  static constexpr int kBlockBoxes = kTileN / kBoxColumns;
  static constexpr int kBoxes = kStageBlocks * kBlockBoxes;
  static constexpr int kStageBytes = kBytesA + kBoxes * kBoxBytes;
  static constexpr int kBarrierBytes = 1024;
  static constexpr int kStages = (232448 - kBarrierBytes) / kStageBytes;  // 227 KB a CTA
  static constexpr int kSharedBytes = kBarrierBytes + kStages * kStageBytes;
  using Ring = HopperRing<kStages, kStageBytes>;
  static_assert(sizeof(RingBarriers<kStages>) <= kBarrierBytes);
  static_assert(kBytesA % 1024 == 0 && kStageBytes % 1024 == 0, "B is aligned for its swizzle");
  static_assert(TwoFour::kUnitBlocks % kStageBlocks == 0);
};

// What the producer loads: the blocks of A and the boxes of B of a stage.
template <class S>
struct Loads {
  const Arguments& args;
  const CUtensorMap& map_b;

  __device__ int first() const { return args.piece_ptr[blockIdx.x]; }
  __device__ int last() const { return args.piece_ptr[blockIdx.x + 1]; }
  __device__ PanelPiece piece(int p) const { return args.pieces[p]; }
  __device__ int stages(const PanelPiece& piece) const { return piece.steps / S::kStageBlocks; }

  __device__ void load_a(const PanelPiece& piece, int i, char* stage, std::uint64_t* full) const {
    const int first_panel = piece.first_panel * S::kWarpRows / TwoFour::kRows;
    const int block = piece.first_step + i * S::kStageBlocks;
#pragma unroll
    for (int j = 0; j < S::kWarpgroups * S::kPanels; ++j) {
      // Past the last panel there is none: its rows are multiplied and not stored.
      const std::int64_t panel = min(first_panel + j, args.panels - 1);
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stage + j * S::kPanelBytes,
                         args.blocks + (panel * args.panel_blocks + block) * S::Block::kBlockBytes,
                         S::kPanelBytes, full);
    }
  }
  __device__ void load_b(const PanelPiece& piece, int i, char* stage, std::uint64_t* full) const {
    const int block = piece.first_step + i * S::kStageBlocks;
#pragma unroll
    for (int j = 0; j < S::kBoxes; ++j) {
      const int k = (block + j / S::kBlockBoxes) * S::Block::kCols;
      const int column = piece.column + j % S::kBlockBoxes * S::kBoxColumns;
      constexpr bool kByColumn = S::kLayoutB == Layout::col_major;
      const std::int32_t from[2] = {kByColumn ? k : column, kByColumn ? column : k};
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global,
                                stage + S::kBytesA + j * S::kBoxBytes, &map_b, from, full);
    }
  }
};

// This thread's indices of one stage: of every block and panel of its warpgroup, in fp8 a word for
// each of a block's two instructions.
template <class S>
using Indices = std::uint32_t[S::kStageBlocks][S::kPanels][S::kWords];

template <class S>
__device__ void load_indices(Indices<S>& to, const char* tile_a) {
  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
#pragma unroll
  for (int i = 0; i < S::kStageBlocks; ++i)
#pragma unroll
    for (int p = 0; p < S::kPanels; ++p)
#pragma unroll
      for (int word = 0; word < S::kWords; ++word)
        to[i][p][word] = reinterpret_cast<const std::uint32_t*>(
            tile_a + p * S::kPanelBytes + i * S::Block::kBlockBytes +
            S::Block::kValueBytes)[word * kWarpgroup + thread];
}

// One instruction: K = 64 bytes of B, in 16 bits always added to what is there.
template <class S, int kSelector>
__device__ void multiply_half(float (&acc)[S::kRegisters], std::uint64_t a, std::uint64_t b,
                              std::uint32_t indices, [[maybe_unused]] int accumulate) {
  if constexpr (S::kPromotes)
    ptx::wgmma_mma_async_sp_e4m3<S::kTileN>(acc, a, b, indices, accumulate);
  else
    ptx::wgmma_mma_async_sp<typename S::Element, S::kMajor, S::kTileN, kSelector>(acc, a, b,
                                                                                  indices);
}

// Issues the multiplications of one stage by one warpgroup: of `kCount` of its panels, from
// `first_panel` on. `accumulate` 0: the first ones overwrite `acc`.
template <class S, int kCount>
__device__ void multiply(float (&acc)[kCount][S::kRegisters], int first_panel, const char* tile_a,
                         const char* tile_b, const Indices<S>& indices, int accumulate) {
  constexpr int kSwizzleA = S::Block::kRowBytes;
  constexpr int kAdvanceA = kMmaBytes / S::Block::kGroup * S::Block::kKept;
  constexpr int kAdvanceB = S::kMajor == ptx::Major::k
                                ? kMmaBytes
                                : kMmaBytes / sizeof(typename S::Element) * S::kLineBytes;
  const std::uint64_t b =
      ptx::wgmma_descriptor<S::kLineBytes>(tile_b, S::kBoxBytes, 8 * S::kLineBytes);
#pragma unroll
  for (int i = 0; i < S::kStageBlocks; ++i)
#pragma unroll
    for (int p = 0; p < kCount; ++p) {
      const std::uint64_t a = ptx::wgmma_descriptor<kSwizzleA>(
          tile_a + (first_panel + p) * S::kPanelBytes + i * S::Block::kBlockBytes, 0,
          8 * kSwizzleA);
      const std::uint64_t block_b =
          ptx::wgmma_descriptor_advance(b, i * S::kBlockBoxes * S::kBoxBytes);
      const auto& words = indices[i][first_panel + p];
      multiply_half<S, 0>(acc[p], a, block_b, words[0], i > 0 ? 1 : accumulate);
      multiply_half<S, 1>(acc[p], ptx::wgmma_descriptor_advance(a, kAdvanceA),
                          ptx::wgmma_descriptor_advance(block_b, kAdvanceB), words[S::kWords - 1],
                          1);
    }
}

// A unit of blocks, all of whose stages are filled.
template <class S>
struct Unit {
  Indices<S> indices[S::kUnitStages];
  const char *tile_a[S::kUnitStages], *tile_b[S::kUnitStages];
};

// Adds a unit to the sums and waits for it: wgmma.sp reads the indices while the thread goes on, so
// the next ones must wait. The other warpgroup keeps the tensor cores busy.
template <class S>
__device__ void add(const Unit<S>& unit, float (&acc)[S::kPanels][S::kRegisters]) {
  ptx::wgmma_fence();
#pragma unroll
  for (int i = 0; i < S::kUnitStages; ++i)
    multiply<S>(acc, 0, unit.tile_a[i], unit.tile_b[i], unit.indices[i], 1);
  ptx::wgmma_commit_group();
  ptx::wgmma_wait_group<0>();
}

// The same in fp8, whose sums tensor cores keep with 14 bits: those of a unit are added in fp32.
template <class S>
__device__ void add_promoted(const Unit<S>& unit, float (&acc)[S::kPanels][S::kRegisters]) {
  constexpr int kTogether = S::kTileN <= 64 ? S::kPanels : 1;  // panels, as registers allow
#pragma unroll
  for (int first = 0; first < S::kPanels; first += kTogether) {
    float part[kTogether][S::kRegisters];
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < S::kUnitStages; ++i)
      multiply<S>(part, first, unit.tile_a[i], unit.tile_b[i], unit.indices[i], i > 0 ? 1 : 0);
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
#pragma unroll
    for (int p = 0; p < kTogether; ++p) {
      ptx::keep_in_registers(part[p]);
#pragma unroll
      for (int i = 0; i < S::kRegisters; ++i) acc[first + p][i] += part[p][i];
    }
  }
}

template <class S>
__device__ void consume(const Arguments& args, const DenseView& c, const typename S::Ring& ring) {
  const int warp = static_cast<int>(threadIdx.x) / 32, warpgroup = warp / 4;
  const int first_piece = args.piece_ptr[blockIdx.x], last_piece = args.piece_ptr[blockIdx.x + 1];
  PanelPiece piece = args.pieces[first_piece];
  ptx::griddepcontrol_wait();
  mbarrier::Cursor at;
  for (int p = first_piece; p < last_piece; ++p) {
    if (p > first_piece) piece = args.pieces[p];
    float acc[S::kPanels][S::kRegisters];
#pragma unroll
    for (auto& panel : acc)
#pragma unroll
      for (float& sum : panel) sum = 0;
    for (int step = 0; step < piece.steps; step += TwoFour::kUnitBlocks) {
      Unit<S> unit;
      int read[S::kUnitStages];
#pragma unroll
      for (int i = 0; i < S::kUnitStages; ++i) {
        read[i] = at.stage;
        unit.tile_a[i] = ring.stage(at.stage) + warpgroup * S::kPanels * S::kPanelBytes;
        unit.tile_b[i] = ring.stage(at.stage) + S::kBytesA;
        ring.wait_full(at);
        load_indices<S>(unit.indices[i], unit.tile_a[i]);
        ring.advance(at);
      }
      if constexpr (S::kPromotes) add_promoted<S>(unit, acc);
      else add<S>(unit, acc);
      __syncwarp();  // all lanes have read their indices
#pragma unroll
      for (int i = 0; i < S::kUnitStages; ++i) ring.release(read[i]);
    }
#pragma unroll
    for (auto& panel : acc) ptx::keep_in_registers(panel);
    if (piece.parts > 1 && !join_parts(args.workspace, piece, warp, acc)) continue;
    if constexpr (S::kPromotes) {
#pragma unroll
      for (auto& panel : acc)
#pragma unroll
        for (float& sum : panel) sum *= args.scale;
    }
    const std::int64_t row = std::int64_t{piece.first_panel} * S::kWarpRows +
                             warpgroup * S::kPanels * TwoFour::kRows + warp % 4 * 16;
#pragma unroll
    for (int panel = 0; panel < S::kPanels; ++panel)
      store_rows(c, row + panel * TwoFour::kRows, piece.column, acc[panel]);
  }
}

template <class S>
__global__ void __launch_bounds__(S::kThreads, 1)
    kernel(const __grid_constant__ Arguments args, const __grid_constant__ CUtensorMap map_b,
           const __grid_constant__ DenseView c) {
  extern __shared__ __align__(1024) char shared[];
  const typename S::Ring ring(*reinterpret_cast<RingBarriers<S::kStages>*>(shared),
                              shared + S::kBarrierBytes);
  ring.start(1, S::kWarps);
  with_roles<S::kConsumers, kRoleRegisters>(
      [&](int thread) {
        if (thread == 0) ring.fill(Loads<S>{args, map_b});
      },
      [&] { consume<S>(args, c, ring); });
}

}  // namespace spmmbench::two_four
