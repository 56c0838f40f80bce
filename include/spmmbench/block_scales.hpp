#pragma once
// Scales of blocks, at precisions that have them (has_block_scales): one for every 128 x 128 block
// of A, and one for every 128 rows of a column of B. An element is what is stored times its scale.
// Models in 8 bits store their weights and activations like this (DeepSeek-V3, arXiv 2412.19437,
// section 3.3.2).

#include <algorithm>
#include <cstdint>

#include "spmmbench/host_device.hpp"

namespace spmmbench {

inline constexpr std::int64_t kScaledBlock = 128;  // rows and columns of A, rows of B
// A scale is at least this share of what all of the matrix would have, so that products of scales
// stay within the range of fp32.
inline constexpr float kLeastScale = 0x1p-10F;

SPMMBENCH_HOST_DEVICE constexpr std::int64_t scaled_blocks(std::int64_t extent) {
  return (extent + kScaledBlock - 1) / kScaledBlock;
}

// Scales of A lie block row by block row. Each block row is padded to a multiple of four scales.
SPMMBENCH_HOST_DEVICE constexpr std::int64_t scale_line_of_a(std::int64_t columns) {
  return (scaled_blocks(columns) + 3) / 4 * 4;
}
SPMMBENCH_HOST_DEVICE constexpr std::int64_t scale_at_a(std::int64_t row, std::int64_t column,
                                                        std::int64_t columns) {
  return row / kScaledBlock * scale_line_of_a(columns) + column / kScaledBlock;
}
constexpr std::int64_t scales_of_a(std::int64_t rows, std::int64_t columns) {
  return scaled_blocks(rows) * scale_line_of_a(columns);
}

// Scales of B lie by groups of 128 rows, and within a group by column. Each group is padded to a
// multiple of four scales.
SPMMBENCH_HOST_DEVICE constexpr std::int64_t scale_line_of_b(std::int64_t columns) {
  return (columns + 3) / 4 * 4;
}
SPMMBENCH_HOST_DEVICE constexpr std::int64_t scale_at_b(std::int64_t row, std::int64_t column,
                                                        std::int64_t columns) {
  return row / kScaledBlock * scale_line_of_b(columns) + column;
}
constexpr std::int64_t scales_of_b(std::int64_t rows, std::int64_t columns) {
  return scaled_blocks(rows) * scale_line_of_b(columns);
}

}  // namespace spmmbench
