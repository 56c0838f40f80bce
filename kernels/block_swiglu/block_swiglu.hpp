#pragma once
// The gated half of a feed-forward by blocks: y = silu(x gate^T) * (x up^T), silu(g) = g / (1 +
// exp(-g)), where gate and up are stored as the 64 x 64 tiles that have a nonzero.

#include <cstdint>

#include "spmmbench/device.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

// On the device. A pair is 128 rows of gate and the same of up, and a step 64 columns of one of
// them in which one of its tiles is stored.
struct SwigluBlocks {
  static constexpr int kTile = 64, kPairRows = 2 * kTile;

  const void* tiles = nullptr;  // [tile_count, 64, 64], rows contiguous
  std::int64_t tile_count = 0;  // from 1
  // For each pair {its first row, its first step, its first step in up, behind its last step}. Gate
  // and up have a step each at least.
  const std::int32_t* pairs = nullptr;
  // For each step {its first column, the tile of the upper 64 rows, of the lower, 0}; -1: none.
  const std::int32_t* steps = nullptr;
};

struct BlockSwiglu {
  ElementType type = ElementType::f16;          // of x, tiles and y: f16, bf16
  std::int64_t rows = 0;                        // of gate and of up: a multiple of 128
  std::int64_t columns = 0;                     // of both: a multiple of 64
  std::int64_t tokens = 0;                      // rows of x and y
  const void* x = nullptr;                      // [tokens, columns]
  void* y = nullptr;                            // [tokens, rows]
  std::int64_t x_distance = 0, y_distance = 0;  // from one token to the next, in elements
  SwigluBlocks blocks;
};

// Enqueues it. Addresses and distances are multiples of 16 bytes. Needs compute capability 9.0.
void multiply_gated(const BlockSwiglu& of, Stream stream);

}  // namespace spmmbench
