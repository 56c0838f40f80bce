#pragma once
// Filling one stage of the ring with the tiles of one step: by TMA (one thread issues) or by
// cp.async (all loader threads copy). Both leave the same bytes in the same swizzled places.

#include <cuda_pipeline_primitives.h>

#include "async_bcsr/shape.cuh"
#include "ptx/cuda_ptx.cuh"

namespace spmmbench::async_bcsr {

// One step of one block of C.
struct Step {
  std::int32_t k;
  std::int32_t a_row[kHeight], a_column;
  StageHead head;
  float scale[kHeight];  // of the tiles of A
};

// TMA. The tiles arrive on `full` of the stage, which also expects the issuing thread.
template <class S>
__device__ void load_tma(const CUtensorMap& map_a, const CUtensorMap& map_b, const Arguments& args,
                         const typename S::Ring& ring, Front& front, int stage, const Step& step,
                         std::uint32_t rank) {
  char* const tile_a = ring.stage(stage);
  char* const tile_b = tile_a + kHeight * kTileBytes;
  std::uint64_t* const full = ring.full(stage);
  const int blocks = (step.a_row[0] >= 0 ? 1 : 0) + (step.a_row[1] >= 0 ? 1 : 0);
  const int bytes = blocks == 0 ? 0 : (blocks + S::kTilesB) * kTileBytes + S::kScaleBytes;
  // The loads come first. They may complete bytes that are not expected yet, which does no harm
  // before the arrival.
  const auto announce = [&] {
    front.head[stage] = step.head;
    if constexpr (S::kBlockScales) {
#pragma unroll
      for (int r = 0; r < kHeight; ++r) front.scale[stage][r] = step.scale[r];
    }
    mbarrier::arrive_expect(full, bytes);
  };
  if (blocks == 0) return announce();
#pragma unroll
  for (int r = 0; r < kHeight; ++r) {
    if (step.a_row[r] < 0) continue;
    const std::int32_t at[2] = {step.a_column, step.a_row[r]};
    if constexpr (S::kCluster == 1) {
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile_a + r * kTileBytes,
                                &map_a, at, full);
    } else if (r % S::kCluster == rank) {
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile_a + r * kTileBytes,
                                &map_a, at, full,
                                static_cast<std::uint16_t>((1 << S::kCluster) - 1));
    }
  }
  const std::int32_t n0 = step.head.column;
  if constexpr (S::kMajorB == ptx::Major::k) {
    const std::int32_t at[2] = {step.k, n0};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile_b, &map_b, at, full);
  } else {
    const int boxes = args.b_whole ? 1 : S::kTilesB;
    for (int j = 0; j < boxes; ++j) {
      const std::int32_t at[3] = {args.b_whole ? 0 : n0 + j * S::kStepK, step.k,
                                  args.b_whole ? n0 / S::kStepK : 0};
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile_b + j * kTileBytes,
                                &map_b, at, full);
    }
  }
  if constexpr (S::kBlockScales) {
    const std::int32_t at[2] = {n0, step.k / static_cast<std::int32_t>(kScaledBlock)};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global,
                              tile_b + S::kTilesB * kTileBytes, &args.map_scales, at, full);
  }
  announce();
}

// cp.async. Chunks of 16 bytes, chunk c of line l goes to place c ^ (l % 8) of its line. The caller
// commits the group and later publishes it: fence, then an arrival of every loader thread.
template <class S>
__device__ void load_cp_async(const Arguments& args, char* tile_a, StageHead& head,
                              const Step& step, int thread) {
  using Element = typename S::Element;
  constexpr int kChunks = kLineBytes / 16;
  constexpr int kPerChunk = 16 / sizeof(Element);
  const auto place = [](char* tile, int line, int chunk) {
    return tile + line * kLineBytes + ((chunk ^ (line & 7)) << 4);
  };
  char* const tile_b = tile_a + kHeight * kTileBytes;
  if (thread == 0) head = step.head;

#pragma unroll
  for (int r = 0; r < kHeight; ++r) {
    if (step.a_row[r] < 0) continue;
    const Element* const a = static_cast<const Element*>(args.a_values) +
                             std::int64_t{step.a_row[r]} * args.bk + step.a_column;
    for (int i = thread; i < kUnitRows * kChunks; i += S::kLoaders) {
      const int line = i / kChunks, chunk = i % kChunks;
      __pipeline_memcpy_async(place(tile_a + r * kTileBytes, line, chunk),
                              a + std::int64_t{line} * args.bk + chunk * kPerChunk, 16);
    }
  }
  // B's tile j holds lines of B's memory: 64 columns of C (K-major) or 64 rows of B.
  const auto* const b = static_cast<const Element*>(args.b.data);
  const std::int64_t lines = args.b.lines, length = args.b.length, n0 = step.head.column;
  for (int i = thread; i < S::kTilesB * kUnitRows * kChunks; i += S::kLoaders) {
    const int j = i / (kUnitRows * kChunks), line = i / kChunks % kUnitRows, chunk = i % kChunks;
    constexpr bool kKMajor = S::kMajorB == ptx::Major::k;
    const std::int64_t at_line = kKMajor ? n0 + j * kUnitRows + line : step.k + line;
    const std::int64_t at =
        (kKMajor ? step.k : n0 + j * S::kStepK) + std::int64_t{chunk} * kPerChunk;
    const std::int64_t left = at_line < lines ? length - at : 0;
    const int bytes = left <= 0           ? 0
                      : left >= kPerChunk ? 16
                                          : static_cast<int>(left * sizeof(Element));
    __pipeline_memcpy_async(place(tile_b + j * kTileBytes, line, chunk),
                            bytes > 0 ? b + at_line * args.b.ld + at : b, 16, 16 - bytes);
  }
}

}  // namespace spmmbench::async_bcsr
