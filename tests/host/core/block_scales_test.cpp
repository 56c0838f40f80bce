#include "core/block_scales.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace spmmbench {
namespace {

constexpr Precision kBlocks = Precision::fp8_e4m3_block;

TEST(BlockScales, TheGreatestMagnitudeOfABlockIsStoredAsTheLargestNumber) {
  // Rows 0 and 130, columns 5 and 300: four blocks, of which one has no value.
  CsrMatrix a{131, 301, std::vector<std::int64_t>(132, 2), {5, 300, 300}, {-1, 2, 448}};
  a.row_ptr.front() = 0;
  a.row_ptr.back() = 3;
  a.block_scales = block_scales_of(a, kBlocks);
  ASSERT_EQ(a.block_scales.size(), 2U * 4) << "lines of a multiple of four";
  EXPECT_EQ(block_scale(a, 0, 5), 1.0F / 448);
  EXPECT_EQ(block_scale(a, 127, 127), 1.0F / 448);
  EXPECT_EQ(block_scale(a, 0, 300), 2.0F / 448);
  EXPECT_EQ(block_scale(a, 130, 300), 1);
  EXPECT_EQ(block_scale(a, 130, 5), 1) << "a block without values has one too";
}

TEST(BlockScales, AreNoSmallerThanAShareOfThatOfAll) {
  CsrMatrix a{1, 256, {0, 2}, {0, 255}, {448, 1e-30F}};
  a.block_scales = block_scales_of(a, kBlocks);
  EXPECT_EQ(block_scale(a, 0, 0), 1);
  EXPECT_EQ(block_scale(a, 0, 255), kLeastScale);
}

TEST(BlockScales, OfBAreThoseOf128RowsOfAColumn) {
  DenseMatrix b{200, 3, std::vector<float>(600, 0.5F)};
  b.values[130 * 3 + 2] = -4;
  const std::vector<float> scales = block_scales_of(b, kBlocks);
  ASSERT_EQ(scales.size(), 2U * 4);
  EXPECT_EQ(scales[scale_at_b(127, 2, 3)], 0.5F / 448);
  EXPECT_EQ(scales[scale_at_b(199, 2, 3)], 4.0F / 448);
  EXPECT_EQ(scales[scale_at_b(199, 1, 3)], 0.5F / 448);
}

TEST(BlockScales, OfADrawnBDifferAndKeepItBelowOne) {
  const std::vector<float> scales = drawn_block_scales(1024, 64, 3, kBlocks);
  const auto [least, most] = std::minmax_element(scales.begin(), scales.end());
  EXPECT_EQ(*most, 1.0F / 448);
  EXPECT_EQ(*least, 0.5F / 448);
}

}  // namespace
}  // namespace spmmbench
