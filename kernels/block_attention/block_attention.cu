// block_attention: block-sparse causal attention with grouped heads on TMA and wgmma.
//
//   producer warp          ring of stages              consumer warpgroup c = 0, 1: 64 queries
//   for each item:         +--------+--------+-----+   for each step:
//     queries              |keys 1  |values 0| ... |     scores = queries keys^T
//     keys, values of      +--------+--------+-----+     out += weights of the step before * values
//     128 keys at a time                                 weights = powers of the scores
//
// The steps and the lists of blocks are in block_attention/shape.cuh. Scores, weights and out stay
// in registers: the weights, as they come, are the A operand of their product.

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <numbers>

#include "block_attention/block_attention.hpp"
#include "block_attention/consume.cuh"
#include "block_attention/produce.cuh"
#include "common/hopper_only.hpp"
#include "common/shared_limit.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/tensor_map.hpp"
#include "ptx/sm90a.cuh"

namespace spmmbench {
namespace {

namespace attention = block_attention;

template <class Element, int kBlockTiles>
__global__ void __launch_bounds__(attention::kThreads, 1)
    attention_kernel(const __grid_constant__ attention::Maps maps,
                     const __grid_constant__ attention::Arguments args) {
  extern __shared__ __align__(1024) char shared[];
  auto& front = *reinterpret_cast<attention::Front*>(shared);
  char* const queries = shared + attention::kFrontBytes;
  const attention::Ring ring(front.ring, queries + attention::kConsumers * attention::kQueryBytes);
  constexpr int kConsumerThreads = attention::kConsumers * attention::kWarpgroup;
  ring.start(1, kConsumerThreads / 32, [&] {
    ptx::mbarrier_init(&front.queries_full, 1);
    ptx::mbarrier_init(&front.queries_empty, kConsumerThreads / 32);
  });
  with_roles<kConsumerThreads, attention::kRegisters>(
      [&](int thread) {
        if (thread < 32) attention::produce<kBlockTiles>(maps, args, ring, front, queries);
      },
      [&] { attention::consume<Element, kBlockTiles>(args, ring, front, queries); });
}

CUtensorMap map_of(const Heads& x, int heads, const BlockAttention& of, int box_tokens) {
  const std::array<std::uint64_t, 3> extents{attention::kHeadSize,
                                             static_cast<std::uint64_t>(heads),
                                             static_cast<std::uint64_t>(of.tokens)};
  const std::array<std::uint64_t, 2> strides{x.head * bytes_of(of.type),
                                             x.token * bytes_of(of.type)};
  const std::array<std::uint32_t, 3> box{attention::kLineElements, 1,
                                         static_cast<std::uint32_t>(box_tokens)};
  return make_tensor_map(x.data, of.type, extents, strides, box,
                         {.swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
}

template <class Element, int kBlockTiles>
void launch(const attention::Maps& maps, const attention::Arguments& args, cudaStream_t stream) {
  const auto run = attention_kernel<Element, kBlockTiles>;
  allow_shared_bytes(run, attention::kSharedBytes);
  const int items = (args.tiles + 1) / 2 * args.heads;
  run<<<std::min(items, device_attribute(cudaDevAttrMultiProcessorCount)), attention::kThreads,
        attention::kSharedBytes, stream>>>(maps, args);
  SPMMBENCH_CUDA_LAUNCHED();
}

}  // namespace

void attend(const BlockAttention& of, Stream stream) {
  require_hopper("attention by blocks");
  const attention::Maps maps{map_of(of.q, of.heads, of, attention::kTile),
                             map_of(of.k, of.key_heads, of, of.blocks.block),
                             map_of(of.v, of.key_heads, of, of.blocks.block)};
  const attention::Arguments args{.counts = of.blocks.counts,
                                  .columns = of.blocks.columns,
                                  .pitch = of.blocks.pitch,
                                  .head_masks = of.blocks.of_heads,
                                  .heads = of.heads,
                                  .group = of.heads / of.key_heads,
                                  .tiles = static_cast<int>(of.tokens / attention::kTile),
                                  .scale = of.scale * std::numbers::log2e_v<float>,
                                  .out = of.out.data,
                                  .out_token = of.out.token,
                                  .out_head = of.out.head};
  auto* const cuda_stream = static_cast<cudaStream_t>(stream.handle);
  const bool wide = of.blocks.block == attention::kStepKeys;
  if (of.type == ElementType::f16)
    wide ? launch<__half, 2>(maps, args, cuda_stream) : launch<__half, 1>(maps, args, cuda_stream);
  else
    wide ? launch<__nv_bfloat16, 2>(maps, args, cuda_stream)
         : launch<__nv_bfloat16, 1>(maps, args, cuda_stream);
}

}  // namespace spmmbench
