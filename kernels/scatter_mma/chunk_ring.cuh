#pragma once
// The chunks of packed B that the pieces of a CTA read, a few of them in shared memory ahead of the
// warps. No warp waits for the others: the warp that is the last to be done with a chunk asks for
// the next one in its place.

#include <cstdint>

#include "common/mbarrier.cuh"
#include "ptx/atom.cuh"
#include "ptx/cuda_ptx.cuh"
#include "scatter_mma/work.hpp"

namespace spmmbench::scatter_mma {

// kWarps read kStages chunks of at most kSlots slots, kSlotBBytes each. A chunk ends with its
// piece.
template <int kWarps, int kStages, int kSlots, int kSlotBBytes>
class ChunkRing {
 public:
  static constexpr int kChunkBytes = kSlots * kSlotBBytes;

  // Of every stage: the barriers `full` and `empty` of common/mbarrier.cuh, and a counter at zero.
  __device__ ChunkRing(char* chunks, std::uint64_t* full, std::uint64_t* empty, unsigned* done,
                       const PanelPiece* pieces, int first_piece, int last_piece, const char* b,
                       std::int64_t tile_bytes)
      : chunks_(chunks),
        full_(full),
        empty_(empty),
        done_(done),
        pieces_(pieces),
        piece_(first_piece),
        last_piece_(last_piece),
        b_(b),
        tile_bytes_(tile_bytes) {}

  // All warps call this once.
  __device__ void start() {
    for (int stage = 0; stage < kStages && piece_ < last_piece_; ++stage) {
      if (threadIdx.x == 0) ask(stage);
      step();
    }
  }
  // Waits for the next chunk.
  __device__ const char* next() {
    at_.wait_full(full_);
    return chunks_ + at_.stage * kChunkBytes;
  }
  // All lanes of the warp are done with the chunk.
  __device__ void release() {
    __syncwarp();
    const bool more = piece_ < last_piece_;
    if (threadIdx.x % 32 == 0) {
      ptx::mbarrier_arrive(empty_ + at_.stage);
      if (ptx::atom_acq_rel_cta_shared_inc_u32(done_ + at_.stage, kWarps - 1) == kWarps - 1 &&
          more) {
        mbarrier::wait(empty_ + at_.stage, at_.parity);  // all have arrived: it does not block
        ask(at_.stage);
      }
    }
    if (more) step();
    at_.advance(kStages);
  }

 private:
  __device__ void ask(int stage) const {
    const PanelPiece& piece = pieces_[piece_];
    const auto bytes = static_cast<std::uint32_t>(min(kSlots, piece.steps - slot_) * kSlotBBytes);
    const char* const from = b_ + piece.column / (kSlotBBytes / kColumnBytes) * tile_bytes_ +
                             std::int64_t{piece.first_step + slot_} * kSlotBBytes;
    mbarrier::arrive_expect(full_ + stage, bytes);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, chunks_ + stage * kChunkBytes, from,
                       bytes, full_ + stage);
  }
  __device__ void step() {
    slot_ += kSlots;
    if (slot_ < pieces_[piece_].steps) return;
    slot_ = 0;
    ++piece_;
  }

  static constexpr int kColumnBytes = GapStreams::kSlotCols * 2;  // of a column of B in a slot

  char* chunks_;
  std::uint64_t *full_, *empty_;
  unsigned* done_;
  const PanelPiece* pieces_;
  int piece_, last_piece_, slot_ = 0;  // of the chunk that is asked for next
  const char* b_;
  std::int64_t tile_bytes_;  // of a tile of columns
  mbarrier::Cursor at_;
};

}  // namespace spmmbench::scatter_mma
