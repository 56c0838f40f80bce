#pragma once
// What the parts of block_swiglu share: its sizes, its arguments, its shared memory, and which
// blocks of y a CTA computes.

#include <cstdint>

#include "async_bcsr/device.cuh"
#include "block_swiglu/block_swiglu.hpp"
#include "common/hopper_ring.cuh"
#include "ptx/wgmma.cuh"
#include "ptx/wgmma_n192.cuh"

namespace spmmbench::block_swiglu {

using async_bcsr::kHeight;
using async_bcsr::kLineBytes;
using async_bcsr::kTileBytes;
using async_bcsr::kUnitRows;
using async_bcsr::kWarpgroup;

inline constexpr int kConsumers = kHeight * kWarpgroup;
inline constexpr int kThreads = kConsumers + kWarpgroup;
// A consumer holds the sums of gate and of up.
inline constexpr RoleRegisters kRegisters{.producer = 40, .consumer = 232};

// 128 rows of gate and the same of up, times kTileN tokens.
template <class Input_>
struct Shape {
  using Input = Input_;
  using Element = Input;
  static constexpr int kTileN = 192;
  static constexpr ptx::Major kMajorB = ptx::Major::k;
  static constexpr int kTilesB = kTileN / kUnitRows;
  static constexpr int kStageBytes = (kHeight + kTilesB) * kTileBytes;
  static constexpr int kStages = 4;
  static constexpr int kChunks = 2;  // of y, per consumer, on their way to memory
  static constexpr int kStagingBytes = kHeight * kChunks * kTileBytes;
  using Ring = HopperRing<kStages, kStageBytes>;
};

struct Arguments {
  const int4* pairs;  // of SwigluBlocks
  const int4* steps;
  int pair_count;
  int token_tiles;  // of S::kTileN tokens
  int band;         // tiles of tokens that are taken in turn, so that their part of x stays in L2
  ElementType type;
  std::int64_t tokens;
};

// A block of y: a pair and a tile of tokens.
struct Item {
  int pair, token_tile;
};
// Bands of tokens one after the other, in each all pairs. CTAs take the blocks from both ends in
// turn: pairs are sorted by their steps, so all CTAs get as many.
__device__ inline Item item_of(const Arguments& args, int turn) {
  const int width = static_cast<int>(gridDim.x), cta = static_cast<int>(blockIdx.x);
  const int i = turn * width + (turn % 2 == 0 ? cta : width - 1 - cta);
  const int of_band = args.pair_count * args.band;
  const int first = i / of_band * args.band;
  const int tiles = min(args.band, args.token_tiles - first), rest = i % of_band;
  return {rest / tiles, first + rest % tiles};
}
__device__ inline bool has_item(const Arguments& args, int turn) {
  const int width = static_cast<int>(gridDim.x), cta = static_cast<int>(blockIdx.x);
  return turn * width + (turn % 2 == 0 ? cta : width - 1 - cta) <
         args.pair_count * args.token_tiles;
}

// What the producer tells the consumers with each stage.
struct alignas(16) StageHead {
  static constexpr std::uint32_t kLastOfPart = 1U << kHeight;  // of gate or of up
  static constexpr std::uint32_t kLastItem = kLastOfPart << 1;
  std::uint32_t flags;  // bit r: the rows of consumer r have a tile here
  std::int32_t row, token;
};

// Dynamic shared memory, aligned for the swizzle: Front; the chunks of y; the stages, each two
// tiles of gate or up and then x.
template <class S>
struct Front {
  StageHead head[S::kStages];
  typename S::Ring::Barriers barriers;
};
inline constexpr int kFrontBytes = 1024;
template <class S>
inline constexpr int kSharedBytes = kFrontBytes + S::kStagingBytes + S::kStages* S::kStageBytes;

}  // namespace spmmbench::block_swiglu
