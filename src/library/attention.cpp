// Block-sparse attention behind the C interface of include/spmmbench/attention.h.

#include "spmmbench/attention.h"

#include <fmt/format.h>

#include <cstdint>

#include "block_attention/block_attention.hpp"
#include "library/arguments.hpp"
#include "library/status.hpp"

namespace spmmbench {
namespace {

constexpr std::int32_t kHeadSize = 128;

Heads read_heads(const spmmbench_heads& given, const char* name) {
  if (given.data == nullptr || !is_aligned_for_bulk(given.data, given.token) ||
      !is_aligned_for_bulk(given.data, given.head))
    throw Error(fmt::format(
        "{}: address and distances of tokens and heads are multiples of 16 bytes", name));
  return {given.data, given.token, given.head};
}

AttentionBlocks read_blocks(const spmmbench_attention_call& given) {
  if (given.block != 64 && given.block != 128)
    throw Unsupported(fmt::format("blocks of {} tokens; 64 or 128 are taken", given.block));
  if (given.counts == nullptr || given.columns == nullptr || given.pitch < 1)
    throw Error("attention needs counts and columns of its blocks");
  return {given.block, given.of_heads != 0, given.counts, given.columns, given.pitch};
}

BlockAttention read_call(const spmmbench_attention_call* asked) {
  const spmmbench_attention_call& given = checked(asked, "spmmbench_attention_call");
  BlockAttention out;
  out.type = read_16_bit_type(given.type, "attention");
  if (given.head_size != kHeadSize)
    throw Unsupported(fmt::format("heads of {}; {} is taken", given.head_size, kHeadSize));
  if (given.heads < 1 || given.key_heads < 1 || given.heads % given.key_heads != 0)
    throw Error(fmt::format("{} heads of queries and {} of keys: the second divides the first",
                            given.heads, given.key_heads));
  out.blocks = read_blocks(given);
  if (given.tokens < 1 || given.tokens % given.block != 0)
    throw Error(
        fmt::format("{} tokens are no multiple of blocks of {}", given.tokens, given.block));
  if (!(given.scale > 0)) throw Error("the scale of attention is a number above 0");
  out.tokens = given.tokens;
  out.heads = given.heads;
  out.key_heads = given.key_heads;
  out.scale = static_cast<float>(given.scale);
  out.q = read_heads(given.q, "q");
  out.k = read_heads(given.k, "k");
  out.v = read_heads(given.v, "v");
  out.out = read_heads(given.out, "out");
  return out;
}

spmmbench_status enqueue(const spmmbench_attention_call* asked, void* stream) noexcept {
  return guarded([&] { attend(read_call(asked), Stream{stream}); });
}

}  // namespace
}  // namespace spmmbench

extern "C" const spmmbench_attention* spmmbench_attending(std::uint32_t version) {
  static constexpr spmmbench_attention kAttention{
      .size = sizeof(spmmbench_attention),
      .version = SPMMBENCH_ATTENTION_VERSION,
      .attend = spmmbench::enqueue,
      .last_error = [] { return spmmbench::last_error.c_str(); }};
  return version == SPMMBENCH_ATTENTION_VERSION ? &kAttention : nullptr;
}
