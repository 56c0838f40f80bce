// Block-sparse attention behind the C interface of include/spmmbench/attention.h.

#include "spmmbench/attention.h"

#include <fmt/format.h>

#include <cstdint>

#include "block_attention/block_attention.hpp"
#include "library/status.hpp"

namespace spmmbench {
namespace {

constexpr std::int64_t kAttentionAlignment = 16;  // bytes, of bulk tensor copies
constexpr std::int64_t kAttentionElementBytes = 2;
constexpr std::int32_t kHeadSize = 128;

Heads read_heads(const spmmbench_heads& given, const char* name) {
  const auto address = reinterpret_cast<std::uintptr_t>(given.data);
  if (given.data == nullptr || address % kAttentionAlignment != 0 ||
      given.token * kAttentionElementBytes % kAttentionAlignment != 0 ||
      given.head * kAttentionElementBytes % kAttentionAlignment != 0)
    throw Error(fmt::format(
        "{}: address and distances of tokens and heads are multiples of 16 bytes", name));
  return {given.data, given.token, given.head};
}

ElementType read_type(std::int32_t type) {
  if (type != SPMMBENCH_F16 && type != SPMMBENCH_BF16)
    throw Unsupported("attention takes fp16 and bf16");
  return type == SPMMBENCH_F16 ? ElementType::f16 : ElementType::bf16;
}

AttentionBlocks read_blocks(const spmmbench_attention_call& given) {
  if (given.block != 64 && given.block != 128)
    throw Unsupported(fmt::format("blocks of {} tokens; 64 or 128 are taken", given.block));
  if (given.counts == nullptr || given.columns == nullptr || given.pitch < 1)
    throw Error("attention needs counts and columns of its blocks");
  return {given.block, given.of_heads != 0, given.counts, given.columns, given.pitch};
}

BlockAttention read_call(const spmmbench_attention_call& given) {
  if (given.size < sizeof(spmmbench_attention_call))
    throw Error("spmmbench_attention_call.size is below that of this version");
  BlockAttention out;
  out.type = read_type(given.type);
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
  return guarded([&] { attend(read_call(*asked), Stream{stream}); });
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
