#pragma once
// Scales of the blocks of A and B on the host (spmmbench/block_scales.hpp).

#include <cstdint>
#include <vector>

#include "spmmbench/block_scales.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

// The greatest magnitude of each block, over the largest number of the precision.
std::vector<float> block_scales_of(const CsrMatrix& a, Precision precision);
std::vector<float> block_scales_of(const DenseMatrix& b, Precision precision);

// Draws the scales of a random B, so that its elements stay within (-1, 1).
std::vector<float> drawn_block_scales(std::int64_t rows, std::int64_t columns, std::uint64_t seed,
                                      Precision precision);

// Powers of two, for the exact test: `count` of them.
std::vector<float> exact_block_scales(std::int64_t count, std::uint64_t seed);

// The scale of the block of A that holds the element; 1 if blocks have no scales.
inline float block_scale(const CsrMatrix& a, std::int64_t row, std::int64_t column) {
  return a.block_scales.empty() ? 1 : a.block_scales[scale_at_a(row, column, a.cols)];
}

}  // namespace spmmbench
