#pragma once
// What the parts of block_attention share: its sizes, its arguments, its shared memory, and which
// queries a CTA takes together.

#include <cstdint>

#include "common/hopper_ring.cuh"

namespace spmmbench::block_attention {

inline constexpr int kHeadSize = 128;
inline constexpr int kTile = 64;      // tokens: the queries of a consumer, half the keys of a step
inline constexpr int kStepTiles = 2;  // tiles of keys in a step
inline constexpr int kStepKeys = kStepTiles * kTile;
inline constexpr int kConsumers = 2;  // warpgroups
inline constexpr int kWarpgroup = 128;
inline constexpr int kLineBytes = 128;                     // the swizzle's span
inline constexpr int kLineElements = kLineBytes / 2;       // of 16 bits
inline constexpr int kPanels = kHeadSize / kLineElements;  // of a head's vectors
inline constexpr int kTilePanelBytes = kTile * kLineBytes;
inline constexpr int kQueryBytes = kPanels * kTilePanelBytes;  // of a consumer
inline constexpr int kStepPanelBytes = kStepKeys * kLineBytes;
inline constexpr int kStageBytes = kPanels * kStepPanelBytes;  // keys or values of a step
inline constexpr int kStages = 6;
inline constexpr int kThreads = (kConsumers + 1) * kWarpgroup;
inline constexpr RoleRegisters kRegisters{.producer = 40, .consumer = 232};
using Ring = HopperRing<kStages, kStageBytes>;

// Dynamic shared memory, aligned for the swizzle: Front; queries; stages.
struct Front {
  Ring::Barriers ring;
  std::uint64_t queries_full, queries_empty;
};
inline constexpr int kFrontBytes = 1024;
static_assert(sizeof(Front) <= kFrontBytes);
inline constexpr int kSharedBytes = kFrontBytes + kConsumers * kQueryBytes + kStages * kStageBytes;

struct Arguments {
  // Blocks of keys of each row of blocks of queries, the diagonal first: counts[row], and
  // columns[row * pitch] on. With head_masks the rows of head h begin at h * (rows of a head).
  const std::int32_t* counts;
  const std::int32_t* columns;
  std::int64_t pitch;
  int head_masks;
  int heads, group;  // heads of queries, and how many of them have the same keys and values
  int tiles;         // tokens / kTile
  float scale;       // of scores, for powers of 2
  void* out;
  std::int64_t out_token, out_head;  // elements from one to the next
};

// The queries of a consumer.
struct Slot {
  int head = 0, tile = 0, row = 0;
  int count = 0;  // blocks of keys; 0: nothing to do
};

// What a CTA takes together: with one list of blocks where that suits both consumers, else each has
// its own, and the steps of both pass through the ring in turn.
struct Item {
  Slot slots[kConsumers];
  int key_head;
  bool shared;
};

// Items are two tiles of queries of one head, or one tile of two heads. Heavy rows are first.
template <int kBlockTiles>
__device__ int items(const Arguments& args) {
  return (args.tiles + 1) / 2 * args.heads;
}
template <int kBlockTiles>
__device__ Item item_of(const Arguments& args, int index) {
  const int pairs = (args.tiles + 1) / 2;
  const int key_head = index / (pairs * args.group), rest = index % (pairs * args.group);
  const int pair = pairs - 1 - rest / args.group, member = rest % args.group;
  const int first_head = key_head * args.group;
  Item item{.slots = {}, .key_head = key_head, .shared = kBlockTiles == 2};
  const auto set = [&](Slot& slot, int head, int tile) {
    if (tile >= args.tiles) return;
    slot.head = head;
    slot.tile = tile;
    slot.row = (args.head_masks ? head * (args.tiles / kBlockTiles) : 0) + tile / kBlockTiles;
    slot.count = __ldg(args.counts + slot.row);
  };
  if (kBlockTiles == 1 && !args.head_masks && member < args.group / 2 * 2) {
    item.shared = true;
#pragma unroll
    for (int c = 0; c < kConsumers; ++c)
      set(item.slots[c], first_head + member / 2 * 2 + c, 2 * pair + member % 2);
  } else {
#pragma unroll
    for (int c = 0; c < kConsumers; ++c) set(item.slots[c], first_head + member, 2 * pair + c);
  }
  return item;
}

template <int kBlockTiles>
__device__ int steps_of(int count) {
  return (count * kBlockTiles + 1) / kStepTiles;
}
// Tile `half` of keys in a step of a row. A row of an odd number of tiles has one behind the last
// token in its first step, which reads as zeros and is later than every query.
template <int kBlockTiles>
__device__ int key_tile(const Arguments& args, const Slot& slot, int step, int half) {
  const std::int32_t* const columns = args.columns + slot.row * args.pitch;
  if constexpr (kBlockTiles == 2) return __ldg(columns + step) * 2 + half;
  const int odd = slot.count % 2;
  if (odd && step == 0 && half == 1) return args.tiles;
  return __ldg(columns + 2 * step + half - (step > 0 ? odd : 0));
}

// Calls run(item) for the items of this CTA: in turn from both ends, so that all have as much.
template <int kBlockTiles, class Run>
__device__ void for_each_item(const Arguments& args, Run&& run) {
  const int all = items<kBlockTiles>(args), ctas = static_cast<int>(gridDim.x);
  const int cta = static_cast<int>(blockIdx.x);
  for (int first = 0, turn = 0; first < all; first += ctas, turn ^= 1) {
    const int index = first + (turn ? ctas - 1 - cta : cta);
    if (index < all) run(item_of<kBlockTiles>(args, index));
  }
}

}  // namespace spmmbench::block_attention
