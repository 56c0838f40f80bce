#include "core/block_scales.hpp"

#include <algorithm>
#include <cmath>

#include "core/greatest_magnitude.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {
namespace {

void add_magnitude(float& greatest, float value) {
  if (std::isfinite(value)) greatest = std::max(greatest, std::abs(value));
}

// Turns the greatest magnitudes of blocks into their scales.
void make_scales(std::vector<float>& greatest, Precision precision) {
  const float of_all = scale_of(precision, greatest_magnitude(greatest));
  for (float& value : greatest) value = std::max(scale_of(precision, value), kLeastScale * of_all);
}

}  // namespace

std::vector<float> block_scales_of(const CsrMatrix& a, Precision precision) {
  std::vector<float> greatest(scales_of_a(a.rows, a.cols));
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t block = 0; block < scaled_blocks(a.rows); ++block) {
    const std::int64_t last = std::min((block + 1) * kScaledBlock, a.rows);
    for (std::int64_t row = block * kScaledBlock; row < last; ++row)
      for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
        add_magnitude(greatest[scale_at_a(row, a.col_idx[e], a.cols)], a.values[e]);
  }
  make_scales(greatest, precision);
  return greatest;
}

std::vector<float> block_scales_of(const DenseMatrix& b, Precision precision) {
  std::vector<float> greatest(scales_of_b(b.rows, b.cols));
  for (std::int64_t i = 0; i < b.rows; ++i)
    for (std::int64_t j = 0; j < b.cols; ++j)
      add_magnitude(greatest[scale_at_b(i, j, b.cols)], b.values[i * b.cols + j]);
  make_scales(greatest, precision);
  return greatest;
}

std::vector<float> drawn_block_scales(std::int64_t rows, std::int64_t columns, std::uint64_t seed,
                                      Precision precision) {
  std::vector<float> scales = exact_block_scales(scales_of_b(rows, columns), seed);
  const float most = scale_of(precision, 1.0F);
  for (float& scale : scales) scale *= most / 2;
  return scales;
}

std::vector<float> exact_block_scales(std::int64_t count, std::uint64_t seed) {
  std::vector<float> scales(count);
  for (std::int64_t i = 0; i < count; ++i)
    scales[i] = drawn_block_scale(seed, static_cast<std::uint64_t>(i), 0);
  return scales;
}

}  // namespace spmmbench
