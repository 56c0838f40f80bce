// SwiGLU by blocks behind the C interface of include/spmmbench/swiglu.h.

#include "spmmbench/swiglu.h"

#include <fmt/format.h>

#include <cstdint>

#include "block_swiglu/block_swiglu.hpp"
#include "library/arguments.hpp"
#include "library/status.hpp"

namespace spmmbench {
namespace {

void check_lines(const void* data, std::int64_t distance, std::int64_t length, const char* name) {
  if (data == nullptr || distance < length || !is_aligned_for_bulk(data, distance))
    throw Error(fmt::format(
        "{}: expected an address and a distance of tokens that are multiples of 16 bytes", name));
}

void check_sizes(const spmmbench_swiglu_call& given) {
  if (given.rows < 1 || given.rows % SwigluBlocks::kPairRows != 0 || given.columns < 1 ||
      given.columns % SwigluBlocks::kTile != 0)
    throw Unsupported(
        fmt::format("gate and up of {} x {}; rows are a multiple of {} and columns of {}",
                    given.rows, given.columns, SwigluBlocks::kPairRows, SwigluBlocks::kTile));
  // Blocks of y, tiles and steps are counted in 32 bits.
  if (given.tokens < 1 || given.rows / SwigluBlocks::kPairRows > INT32_MAX / given.tokens)
    throw Error(fmt::format("{} tokens of {} rows are more than can be counted, or none",
                            given.tokens, given.rows));
  if (given.tile_count < 1 || given.tile_count > INT32_MAX / SwigluBlocks::kTile)
    throw Error(fmt::format("{} tiles; from 1 to {} are taken", given.tile_count,
                            INT32_MAX / SwigluBlocks::kTile));
}

BlockSwiglu read_call(const spmmbench_swiglu_call* asked) {
  const spmmbench_swiglu_call& given = checked(asked, "spmmbench_swiglu_call");
  const ElementType type = read_16_bit_type(given.type, "SwiGLU by blocks");
  check_sizes(given);
  check_lines(given.x, given.x_distance, given.columns, "x");
  check_lines(given.y, given.y_distance, given.rows, "y");
  check_lines(given.tiles, SwigluBlocks::kTile, SwigluBlocks::kTile, "tiles");
  check_lines(given.pairs, SwigluBlocks::kTile, SwigluBlocks::kTile, "pairs");
  check_lines(given.steps, SwigluBlocks::kTile, SwigluBlocks::kTile, "steps");
  return {.type = type,
          .rows = given.rows,
          .columns = given.columns,
          .tokens = given.tokens,
          .x = given.x,
          .y = given.y,
          .x_distance = given.x_distance,
          .y_distance = given.y_distance,
          .blocks = {given.tiles, given.tile_count, given.pairs, given.steps}};
}

spmmbench_status enqueue(const spmmbench_swiglu_call* asked, void* stream) noexcept {
  return guarded([&] { multiply_gated(read_call(asked), Stream{stream}); });
}

}  // namespace
}  // namespace spmmbench

extern "C" const spmmbench_swiglu* spmmbench_gating(std::uint32_t version) {
  static constexpr spmmbench_swiglu kSwiglu{
      .size = sizeof(spmmbench_swiglu),
      .version = SPMMBENCH_SWIGLU_VERSION,
      .multiply = spmmbench::enqueue,
      .last_error = [] { return spmmbench::last_error.c_str(); }};
  return version == SPMMBENCH_SWIGLU_VERSION ? &kSwiglu : nullptr;
}
