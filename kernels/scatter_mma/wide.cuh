#pragma once
// A CTA multiplies 256 rows of A by 64 columns of B with wgmma. The product is transposed,
// C^T = B^T * A^T: wgmma's 64 rows are columns of B, so that a dense tile of A is read from shared
// memory once for 64 of them.
//
//   decoding warps, one per panel of 64 rows and part of k        a warpgroup
//
//     streams of panel 0, part 0 --scatter--> ring of slots --+
//     streams of panel 1, part 0 --scatter--> ring of slots --+-- full --> m64n128k16, two panels
//     ...                                                     +-- read <-- at a time, all parts
//     streams of panel 3, part 1 --scatter--> ring of slots --+            of k into the same sums
//     B in tiles of 64 columns x a slot of k, bulk copies ----+
//
// A warp clears a slot when it has been read, which happens while the next one is decoded. The
// parts of k are there so that enough warps decode. Work comes in blocks of as many slots as a ring
// has, so that the products' addresses are constants.

#include "common/mbarrier.cuh"
#include "common/panel_sums.cuh"
#include "ptx/cuda_ptx.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/keep.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/wgmma.cuh"
#include "scatter_mma/pack.cuh"
#include "scatter_mma/stream_reader.cuh"

namespace spmmbench::scatter_mma {

// What a multiprocessor of compute capability 9.0 has for one CTA (CUDA C Programming Guide).
inline constexpr int kMostRegisters = 65536, kMostSharedBytes = 227 * 1024;

struct WideShape {
  static constexpr int kPanels = 4;                   // of a CTA
  static constexpr int kPairs = kPanels / 2;          // panels side by side in shared memory
  static constexpr int kParts = 2;                    // of k
  static constexpr int kDecoders = kPanels * kParts;  // warps
  static constexpr int kStages = GapStreams::kRingSlots;
  static constexpr int kUnitSlots = kParts * kStages;  // the least that work is divided into
  static constexpr int kMultipliers = 128;             // threads
  static constexpr int kThreads = kMultipliers + kDecoders * 32;
  static constexpr int kPairBytes = 2 * kSlotBytes;
  static constexpr int kTiles = kParts * kStages;  // of B in its ring
  static constexpr int kBarrierBytes = 1024;
  static constexpr int kSlotsAt = kBarrierBytes + kTiles * kWideTileBytes;
  static constexpr int kSharedBytes = kSlotsAt + kParts * kPairs * kStages * kPairBytes;
  static constexpr int kMultiplierRegisters = 208, kDecoderRegisters = 144;
  static constexpr int kRegisters = kMostRegisters / kThreads / 8 * 8;  // of a thread at first
  static_assert(kMultipliers * kMultiplierRegisters + kDecoders * 32 * kDecoderRegisters <=
                kThreads * kRegisters);
  static_assert(kSharedBytes <= kMostSharedBytes);
};

// The barriers and rings of a CTA. A stage is a slot of all panels, of one part of k; stage s of
// part p goes with tile s * kParts + p of B.
struct WideRings {
  using S = WideShape;

  char* shared;

  __device__ std::uint64_t* full(int part) const {  // the panels' warps have decoded the stage
    return reinterpret_cast<std::uint64_t*>(shared) + part * S::kStages;
  }
  __device__ std::uint64_t* read(int part) const { return full(S::kParts + part); }
  __device__ std::uint64_t* b_full() const { return full(2 * S::kParts); }
  __device__ std::uint64_t* b_empty() const { return b_full() + S::kTiles; }
  __device__ char* b_tile(int tile) const {
    return shared + S::kBarrierBytes + tile * kWideTileBytes;
  }
  __device__ char* slot(int part, int pair, int stage) const {
    return shared + S::kSlotsAt + ((part * S::kPairs + pair) * S::kStages + stage) * S::kPairBytes;
  }
  __device__ void init() const {
    constexpr int kWarps = S::kMultipliers / 32;
    for (int part = 0; part < S::kParts; ++part)
      mbarrier::init(full(part), read(part), S::kStages, S::kPanels, kWarps);
    mbarrier::init(b_full(), b_empty(), S::kTiles, 1, kWarps);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
};

__device__ inline void decode_panels(const Arguments& args, const WideRings& rings, int decoder) {
  using S = WideShape;
  const int part = decoder / S::kPanels, panel = decoder % S::kPanels;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  std::uint64_t *const full = rings.full(part), *const read = rings.read(part);
  const auto first_slot = static_cast<std::uint32_t>(
      __cvta_generic_to_shared(rings.slot(part, panel / 2, 0) + panel % 2 * kSlotBytes));
  const auto clear = [&](int stage) {
    const std::uint32_t slot = first_slot + stage * S::kPairBytes + lane * 16;
#pragma unroll
    for (int at = 0; at < kSlotBytes; at += 32 * 16) ptx::st_shared_v4_zero(slot + at);
    __syncwarp();
  };
  for (int stage = 0; stage < S::kStages; ++stage) clear(stage);
  StreamReader<2> reader(first_slot);
  // The stage that is being decoded, and the one before it: at first the last, which is empty.
  mbarrier::Cursor at, before = {S::kStages - 1, 1};
  for (int p = args.piece_ptr[blockIdx.x]; p < args.piece_ptr[blockIdx.x + 1]; ++p) {
    const PanelPiece& piece = args.pieces[p];
    reader.begin(args, args.segments[(piece.first_segment + panel) * S::kParts + part], at.stage);
    reader.run(piece.steps / S::kParts, [&] {
      ptx::fence_proxy_async(ptx::space_shared);
      __syncwarp();
      if (lane == 0) ptx::mbarrier_arrive(full + at.stage);
      mbarrier::wait(read + before.stage, before.parity);
      clear(before.stage);
      before = at;
      at.advance(S::kStages);
    });
  }
}

// C^T.
__device__ inline DenseView transposed(const DenseView& c) {
  DenseView out = c;
  out.rows = c.cols;
  out.cols = c.rows;
  out.layout = c.layout == Layout::row_major ? Layout::col_major : Layout::row_major;
  return out;
}

template <class T>
__device__ void multiply_slots(const Arguments& args, const WideRings& rings, const char* b,
                               std::int64_t tile_bytes, const DenseView& c) {
  using S = WideShape;
  constexpr int kSteps = GapStreams::kSlotCols / 16, kStepBytes = 16 * sizeof(T);  // of wgmma
  constexpr std::uint32_t kEightRows = 8 * GapStreams::kSlotCols * sizeof(T);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const bool arrives = threadIdx.x % 32 == 0, copies = threadIdx.x == 0;
  std::uint64_t *const b_full = rings.b_full(), *const b_empty = rings.b_empty();
  const std::uint64_t first_columns = ptx::wgmma_descriptor<64>(rings.b_tile(0), 0, kEightRows);
  const std::uint64_t first_rows = ptx::wgmma_descriptor<64>(rings.slot(0, 0, 0), 0, kEightRows);
  // The tiles of B of a block: of part 0, and how far those of part 1 lie beyond them.
  struct Tiles {
    const char* first;
    std::int64_t part;
  };
  const auto tiles_of = [&](const PanelPiece& piece) {
    return Tiles{b + piece.column / kWideColumns * tile_bytes +
                     std::int64_t{piece.first_step} * kWideTileBytes,
                 std::int64_t{piece.steps / S::kParts} * kWideTileBytes};
  };
  const auto copy_tile = [&](const Tiles& from, int tile) {
    mbarrier::arrive_expect(b_full + tile, kWideTileBytes);
    ptx::cp_async_bulk(
        ptx::space_cluster, ptx::space_global, rings.b_tile(tile),
        from.first + tile % S::kParts * from.part + tile / S::kParts * kWideTileBytes,
        kWideTileBytes, b_full + tile);
  };
  const int last_piece = args.piece_ptr[blockIdx.x + 1];
  int p = args.piece_ptr[blockIdx.x];
  ptx::griddepcontrol_wait();
  Tiles next = tiles_of(args.pieces[p]);
  if (copies)
    for (int tile = 0; tile < S::kTiles; ++tile) copy_tile(next, tile);
  std::uint32_t parity = 0;  // of the block
  for (; p < last_piece; ++p) {
    const PanelPiece piece = args.pieces[p];
    float acc[S::kPairs][64] = {};
    for (int left = piece.steps / S::kUnitSlots; left > 0; --left, parity ^= 1) {
      const bool more = left > 1 || p + 1 < last_piece;
      if (left > 1) next.first += S::kStages * kWideTileBytes;
      else if (more) next = tiles_of(args.pieces[p + 1]);
      const auto release = [&](int tile) {
        if (arrives) {
          ptx::mbarrier_arrive(rings.read(tile % S::kParts) + tile / S::kParts);
          ptx::mbarrier_arrive(b_empty + tile);
        }
        if (copies && more) {
          mbarrier::wait(b_empty + tile, parity);
          copy_tile(next, tile);
        }
      };
#pragma unroll
      for (int tile = 0; tile < S::kTiles; ++tile) {
        const int stage = tile / S::kParts, part = tile % S::kParts;
        mbarrier::wait(b_full + tile, parity);
        mbarrier::wait(rings.full(part) + stage, parity);
        ptx::wgmma_fence();
#pragma unroll
        for (int q = 0; q < S::kPairs; ++q)
#pragma unroll
          for (int k = 0; k < kSteps; ++k)
            ptx::wgmma_mma_async<T, ptx::Major::k, 128>(
                acc[q],
                ptx::wgmma_descriptor_advance(first_columns,
                                              tile * kWideTileBytes + k * kStepBytes),
                ptx::wgmma_descriptor_advance(
                    first_rows,
                    ((part * S::kPairs + q) * S::kStages + stage) * S::kPairBytes + k * kStepBytes),
                1);
        ptx::wgmma_commit_group();
        ptx::wgmma_wait_group<1>();
        if (tile > 0) release(tile - 1);
      }
      ptx::wgmma_wait_group<0>();
      release(S::kTiles - 1);
    }
#pragma unroll
    for (int q = 0; q < S::kPairs; ++q) ptx::keep_in_registers(acc[q]);

    if (piece.parts > 1 && !join_parts(args.workspace, piece, warp, acc)) continue;
    const DenseView ct = transposed(c);
#pragma unroll
    for (int q = 0; q < S::kPairs; ++q)
      store_rows(ct, piece.column + warp * 16,
                 (std::int64_t{piece.first_panel} + 2 * q) * GapStreams::kPanelRows, acc[q]);
  }
}

// `b`: packed by pack_wide_b, `tile_bytes` for 64 columns.
template <class T>
__global__ void __launch_bounds__(WideShape::kThreads, 1)
    multiply_wide(const __grid_constant__ Arguments args, const char* b, std::int64_t tile_bytes,
                  const __grid_constant__ DenseView c) {
  using S = WideShape;
  extern __shared__ __align__(1024) char shared[];
  const WideRings rings{shared};
  if (threadIdx.x == 0) rings.init();
  __syncthreads();
  ptx::griddepcontrol_launch_dependents();
  if (threadIdx.x < S::kMultipliers) {
    ptx::setmaxnreg_inc<S::kMultiplierRegisters>();
    multiply_slots<T>(args, rings, b, tile_bytes, c);
  } else {
    ptx::setmaxnreg_dec<S::kDecoderRegisters>();
    decode_panels(args, rings, static_cast<int>(threadIdx.x - S::kMultipliers) / 32);
  }
}

}  // namespace spmmbench::scatter_mma
