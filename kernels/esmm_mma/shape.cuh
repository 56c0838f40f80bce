#pragma once
// What the parts of esmm_mma share: the tile of a CTA, the entries of its list and the stages of
// its ring.
//
// A strip is 32 rows of A or 32 columns of B, a panel the strips of one tile of C: 4 of A and 8 of
// B, hence 128 x 256. An entry of a tile's list is an index k with the strips that are nonzero
// there, A's in 4 bits and B's in 8. A chunk is the entries of one wgmma (32 bytes of k), and a
// stage of the ring holds two chunks: for every strip a tile of 2 KiB, A's before B's.
//
//   16 bits, A and B   [k 32][strip 32]   lines of 64 bytes in the 64-byte swizzle: MN-major
//   tf32, A            [k 16][strip 32]   lines of 128 bytes, read to registers
//   tf32, B            [strip 32][k 16]   lines of 64 bytes in the 64-byte swizzle: K-major, which
//   is
//                                         all that wgmma takes of 32-bit operands

#include <cuda.h>

#include <cstdint>
#include <type_traits>

#include "common/hopper_ring.cuh"
#include "common/tile_store.cuh"
#include "ptx/tf32.cuh"
#include "spmmbench/device.hpp"

namespace spmmbench::esmm_mma {

inline constexpr int kStrip = 32;   // rows of A, columns of B
inline constexpr int kStripsA = 4;  // of a panel
inline constexpr int kStripsB = 8;
inline constexpr int kTileRows = kStripsA * kStrip;
inline constexpr int kTileColumns = kStripsB * kStrip;
inline constexpr int kWarpgroup = 128;
inline constexpr int kWarpgroupRows = 64;  // of wgmma
inline constexpr int kCopyBytes = 16;

// An entry of a list: k, then A's strips, then B's.
inline constexpr int kIndexBits = 20;
inline constexpr std::uint32_t kIndexMask = (1U << kIndexBits) - 1;
inline constexpr int kShiftA = kIndexBits;
inline constexpr int kShiftB = kShiftA + kStripsA;
static_assert(kShiftB + kStripsB == 32);

// What a tile of C takes.
struct TileWork {
  std::int32_t stages;    // at least one
  std::int32_t products;  // wgmmas of 32 columns, of each warpgroup
};

template <class Input_>
struct Shape {
  using Input = Input_;
  using Element = std::conditional_t<std::is_same_v<Input, ptx::Tf32>, float, Input>;
  static constexpr bool kTf32 = std::is_same_v<Input, ptx::Tf32>;
  static constexpr int kChunks = 2;
  static constexpr int kChunkK = 32 / int{sizeof(Element)};
  static constexpr int kStageK = kChunks * kChunkK;
  static constexpr int kStripLine = kStrip * int{sizeof(Element)};  // bytes of a strip at one k
  static constexpr int kStripBytes = kStageK * kStripLine;
  static constexpr int kStageBytes = (kStripsA + kStripsB) * kStripBytes;
  static constexpr int kStages = 8;
  static constexpr int kConsumers = kTileRows / kWarpgroupRows * kWarpgroup;
  static constexpr int kProducers = kWarpgroup;
  static constexpr int kThreads = kConsumers + kProducers;
  static constexpr RoleRegisters kRoleRegisters = {.producer = 96, .consumer = 200};
  using Ring = HopperRing<kStages, kStageBytes>;

  // Where 16 bytes of a strip's line go: B of 16 bits is read by wgmma, so its places are those of
  // the 64-byte swizzle. In tf32 lanes read words of four lines, 4 bytes of each.
  __device__ static int place(int k, int piece) {
    if constexpr (kTf32) return k * kStripLine + ((piece ^ k % 4 * 2) << 4);
    else return k * kStripLine + ((piece ^ k / 2 % 4) << 4);
  }
};

// Dynamic shared memory: Front; per consumer warpgroup kStagingChunks chunks of C; the stages.
template <class S>
struct Front {
  RingBarriers<S::kStages> barriers;
  std::uint32_t masks[S::kStages];  // B's strips of the chunks of a stage, 8 bits each; kLastStage
};
inline constexpr std::uint32_t kLastStage = 1U << 31;  // of a tile
inline constexpr int kFrontBytes = 1024;
inline constexpr int kStagingChunks = 2;
inline constexpr int kStagingBytes =
    kTileRows / kWarpgroupRows * kStagingChunks * tile_store::kChunkBytes;
template <class S>
inline constexpr int kSharedBytes = kFrontBytes + kStagingBytes + S::kStages* S::kStageBytes;

struct Arguments {
  const void* a_lines;         // [strips of A][k][32]
  const std::uint32_t* lists;  // [panels of A][panels of B][pitch]
  const TileWork* work;        // [panels of A][panels of B]
  std::int64_t pitch;
  int k;
  int panels_a, panels_b;
  const void* b;
  unsigned ldb_bytes;
  int n;
  ElementType type_c;
};

}  // namespace spmmbench::esmm_mma
