#pragma once
// The producer of block_attention: one warp that brings queries, keys and values by TMA. A step's
// keys go before the values of the step before, which is the order in which consumers use them.

#include <cuda.h>

#include "block_attention/shape.cuh"

namespace spmmbench::block_attention {

// q, k, v: [head size, heads, tokens], boxes of a line of kLineBytes, one head, a tile of queries,
// a block of keys.
struct Maps {
  CUtensorMap q, k, v;
};

// The tiles of keys of a row, step after step, as one warp sees them: lane l holds tile l of 32.
template <int kBlockTiles>
struct KeyTiles {
  int now[kStepTiles], before[kStepTiles];

  __device__ void next(const Arguments& args, const Slot& slot, int step) {
    constexpr int kSteps = 32 / kStepTiles;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (step % kSteps == 0) {
      const int mine = step + lane / kStepTiles;
      held_ = mine < steps_of<kBlockTiles>(slot.count)
                  ? key_tile<kBlockTiles>(args, slot, mine, lane % kStepTiles)
                  : 0;
    }
#pragma unroll
    for (int i = 0; i < kStepTiles; ++i) {
      before[i] = now[i];
      now[i] = __shfl_sync(~0U, held_, step % kSteps * kStepTiles + i);
    }
  }

 private:
  int held_ = 0;
};

template <int kBlockTiles>
__device__ void produce(const Maps& maps, const Arguments& args, const Ring& ring, Front& front,
                        char* queries) {
  const bool leader = threadIdx.x % 32 == 0;
  mbarrier::Cursor at;
  std::uint32_t parity = 0;  // of queries_empty
  const auto copy = [&](const CUtensorMap& map, char* to, int panel, int head, int tile,
                        std::uint64_t* full) {
    const std::int32_t from[3] = {panel * kLineElements, head, tile * kTile};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to, &map, from, full);
  };
  const auto load = [&](const CUtensorMap& map, int head, const int(&tiles)[kStepTiles]) {
    ring.wait_empty(at);
    if (leader) {
      std::uint64_t* const full = ring.full(at.stage);
      mbarrier::arrive_expect(full, kStageBytes);
      for (int panel = 0; panel < kPanels; ++panel)
#pragma unroll
        for (int i = 0; i < kStepTiles; i += kBlockTiles)
          copy(map, ring.stage(at.stage) + panel * kStepPanelBytes + i * kTilePanelBytes, panel,
               head, tiles[i], full);
    }
    __syncwarp();
    ring.advance(at);
  };
  const auto load_queries = [&](const Item& item) {
    mbarrier::wait(&front.queries_empty, parity ^ 1);
    parity ^= 1;
    if (leader) {
      const int active = (item.slots[0].count > 0) + (item.slots[1].count > 0);
      mbarrier::arrive_expect(&front.queries_full, active * kQueryBytes);
#pragma unroll
      for (int c = 0; c < kConsumers; ++c)
        for (int panel = 0; panel < kPanels && item.slots[c].count > 0; ++panel)
          copy(maps.q, queries + c * kQueryBytes + panel * kTilePanelBytes, panel,
               item.slots[c].head, item.slots[c].tile, &front.queries_full);
    }
    __syncwarp();
  };
  for_each_item<kBlockTiles>(args, [&](const Item& item) {
    int steps[kConsumers];
#pragma unroll
    for (int c = 0; c < kConsumers; ++c)
      steps[c] = c > 0 && item.shared ? 0 : steps_of<kBlockTiles>(item.slots[c].count);
    const int most = max(steps[0], steps[1]);
    if (most == 0) return;
    KeyTiles<kBlockTiles> tiles[kConsumers];
    for (int step = 0; step <= most; ++step) {
#pragma unroll
      for (int c = 0; c < kConsumers; ++c)
        if (step < steps[c]) {
          tiles[c].next(args, item.slots[c], step);
          load(maps.k, item.key_head, tiles[c].now);
        }
      if (step == 0) load_queries(item);
#pragma unroll
      for (int c = 0; c < kConsumers; ++c)
        if (step > 0 && step <= steps[c]) {
          if (step < steps[c]) load(maps.v, item.key_head, tiles[c].before);
          else load(maps.v, item.key_head, tiles[c].now);
        }
    }
  });
}

}  // namespace spmmbench::block_attention
