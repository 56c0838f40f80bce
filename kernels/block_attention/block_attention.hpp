#pragma once
// Block-sparse causal attention: out = softmax(scale * q k^T) v over the blocks of keys that a
// pattern keeps and no later than the query.

#include <cstdint>

#include "spmmbench/device.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

// [tokens, heads, 128] on the device; elements from one token or head to the next. A head's vector
// is contiguous. Addresses and distances are multiples of 16 bytes.
struct Heads {
  void* data = nullptr;
  std::int64_t token = 0, head = 0;
};

// For each row of blocks of queries its blocks of keys, on the device: counts[row], from 1, and
// columns[row * pitch] on, each once and none above the diagonal; the diagonal is first.
struct AttentionBlocks {
  int block = 0;          // tokens: 64 or 128
  bool of_heads = false;  // each head of queries has rows of its own, one after the other
  const std::int32_t* counts = nullptr;
  const std::int32_t* columns = nullptr;
  std::int64_t pitch = 0;
};

struct BlockAttention {
  ElementType type = ElementType::f16;  // of q, k, v and out: f16, bf16
  std::int64_t tokens = 0;              // a multiple of the block
  int heads = 0, key_heads = 0;         // of q and out; of k and v, which divides it
  float scale = 0;                      // above 0
  Heads q, k, v, out;
  AttentionBlocks blocks;
};

// Enqueues it. Needs compute capability 9.0.
void attend(const BlockAttention& of, Stream stream);

}  // namespace spmmbench
