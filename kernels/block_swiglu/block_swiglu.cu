// block_swiglu: y = silu(x gate^T) * (x up^T) for block-sparse gate and up, on TMA and wgmma.
//
//   producer warp              ring of stages             consumer warpgroup r = 0, 1: 64 rows
//   for each block of y:       +----+------+------+---+     gate: sums of its steps
//     steps of gate, of up  -> |head|tile 0|tile 1| x |     up: sums of its steps
//                              +----+------+------+---+     silu(gate) * up leaves by TMA
//
// It is async_bcsr with the sums of two rows of blocks in a CTA, so that neither leaves it.

#include <cuda_runtime.h>

#include <algorithm>
#include <array>

#include "block_swiglu/block_swiglu.hpp"
#include "block_swiglu/device.cuh"
#include "common/hopper_only.hpp"
#include "common/shared_limit.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/tensor_map.hpp"
#include "ptx/sm90a.cuh"

namespace spmmbench {
namespace {

namespace swiglu = block_swiglu;

// Tokens of a band, about. 576 and 2048 took as long (docs/decisions/async-bcsr.md).
constexpr int kBandTokens = 1024;

template <class S>
__global__ void __launch_bounds__(swiglu::kThreads, 1)
    swiglu_kernel(const __grid_constant__ CUtensorMap map_tiles,
                  const __grid_constant__ CUtensorMap map_x,
                  const __grid_constant__ CUtensorMap map_y,
                  const __grid_constant__ swiglu::Arguments args) {
  extern __shared__ __align__(1024) char shared[];
  auto& front = *reinterpret_cast<swiglu::Front<S>*>(shared);
  static_assert(sizeof(front) <= swiglu::kFrontBytes);
  char* const staging = shared + swiglu::kFrontBytes;
  const typename S::Ring ring(front.barriers, staging + S::kStagingBytes);
  ring.start(1, swiglu::kConsumers / 32);
  with_roles<swiglu::kConsumers, swiglu::kRegisters>(
      [&](int thread) {
        if (thread < 32) swiglu::produce<S>(map_tiles, map_x, args, ring, front.head);
      },
      [&] { swiglu::Consumer<S>(map_y, args, ring, front.head, staging).run(); });
}

CUtensorMap map_of(const void* data, ElementType type, std::int64_t lines, std::int64_t length,
                   std::int64_t distance, int box_lines) {
  const std::array<std::uint64_t, 2> extents{static_cast<std::uint64_t>(length),
                                             static_cast<std::uint64_t>(lines)};
  const std::array<std::uint64_t, 1> strides{distance * bytes_of(type)};
  const std::array<std::uint32_t, 2> box{SwigluBlocks::kTile,
                                         static_cast<std::uint32_t>(box_lines)};
  return make_tensor_map(data, type, extents, strides, box,
                         {.swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
}

template <class S>
void launch(const BlockSwiglu& of, cudaStream_t stream) {
  constexpr int kTile = SwigluBlocks::kTile;
  const swiglu::Arguments args{
      .pairs = reinterpret_cast<const int4*>(of.blocks.pairs),
      .steps = reinterpret_cast<const int4*>(of.blocks.steps),
      .pair_count = static_cast<int>(of.rows / SwigluBlocks::kPairRows),
      .token_tiles = static_cast<int>((of.tokens + S::kTileN - 1) / S::kTileN),
      .band = kBandTokens / S::kTileN,
      .type = of.type,
      .tokens = of.tokens};
  const auto run = swiglu_kernel<S>;
  allow_shared_bytes(run, swiglu::kSharedBytes<S>);
  const int items = args.pair_count * args.token_tiles;
  run<<<std::min(items, device_attribute(cudaDevAttrMultiProcessorCount)), swiglu::kThreads,
        swiglu::kSharedBytes<S>, stream>>>(
      map_of(of.blocks.tiles, of.type, of.blocks.tile_count * kTile, kTile, kTile, kTile),
      map_of(of.x, of.type, of.tokens, of.columns, of.x_distance, S::kTileN),
      map_of(of.y, of.type, of.tokens, of.rows, of.y_distance, tile_store::kBoxLines), args);
  SPMMBENCH_CUDA_LAUNCHED();
}

}  // namespace

void multiply_gated(const BlockSwiglu& of, Stream stream) {
  require_hopper("SwiGLU by blocks");
  auto* const cuda_stream = static_cast<cudaStream_t>(stream.handle);
  if (of.type == ElementType::f16) launch<swiglu::Shape<__half>>(of, cuda_stream);
  else launch<swiglu::Shape<__nv_bfloat16>>(of, cuda_stream);
}

}  // namespace spmmbench
