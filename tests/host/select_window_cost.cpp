#include "select/window_cost.hpp"

#include <gtest/gtest.h>

namespace spmmbench::window {
namespace {

constexpr double kSms = 132;

// N = 64 in 16 bits: one feature tile, CTAs of a team of four, seven on each SM.
WindowWork narrow(double windows, double mean) {
  return {.tiles = windows * mean,
          .windows = windows,
          .feature_tiles = 1,
          .ctas_of_window = 1,
          .team = 4,
          .sms = kSms,
          .warps = kSms * 28};
}

TEST(WindowCost, FewWindowsHaveOneFeatureTileInACta) {
  EXPECT_EQ(cta_feature_tiles(4, 16, 4, kSms), 1);
  EXPECT_EQ(cta_feature_tiles(4, 150, 4, kSms), 2);  // 2 x 150 CTAs
  EXPECT_EQ(cta_feature_tiles(4, 264, 4, kSms), 4);  // two on each SM
  EXPECT_EQ(cta_feature_tiles(2, 150, 1, kSms), 1);
  EXPECT_EQ(cta_feature_tiles(4, 0, 4, kSms), 1);
}

TEST(WindowCost, WindowsLikeTheOthersAreNotSplit) {
  for (const double mean : {20.0, 33.0, 47.0, 91.0}) {
    const PartTiles of_warp = part_tiles(narrow(313, mean));
    EXPECT_GT(4 * of_warp.part, mean) << mean;
  }
  // Too long for four warps.
  const PartTiles of_warp = part_tiles(narrow(313, 133));
  EXPECT_LT(4 * of_warp.part, 133);
}

TEST(WindowCost, FewTilesAreSpreadOverAllSms) {
  // A few long windows among many short ones.
  EXPECT_EQ(part_tiles(narrow(2200, 2.4)).part, kLeastPart);
  EXPECT_EQ(part_tiles(narrow(2200, 2.4)).split, kLeastPart / 2);
  // Windows for an eighth of the SMs, however long they are.
  for (const double mean : {40.0, 60.0, 100.0})
    EXPECT_EQ(part_tiles(narrow(16, mean)).part, kLeastPart);
  // Nearly one for each SM: shared by a CTA, unless the walk is too long.
  EXPECT_GE(4 * part_tiles(narrow(125, 60)).part, 60);
  EXPECT_EQ(part_tiles(narrow(125, 91)).part, kLeastPart);
}

TEST(WindowCost, ManyTilesMakeLongParts) {
  const PartTiles of_warp = part_tiles(narrow(10000, 10));
  EXPECT_EQ(of_warp.part, kMostPart);
  EXPECT_EQ(of_warp.split, kMostPart);
}

TEST(WindowCost, AWarpKeepsWindowsLikeTheOthersWhereTheyAreEnough) {
  constexpr int kRule = 6;
  EXPECT_GE(whole_tiles(narrow(3750, 7.7), kRule), 8);
  EXPECT_GE(whole_tiles(narrow(1000, 12), kRule), 12);
  EXPECT_EQ(whole_tiles(narrow(900, 7.7), kRule), kRule);   // not enough
  EXPECT_EQ(whole_tiles(narrow(3750, 18), kRule), kRule);   // too long
  EXPECT_EQ(whole_tiles(narrow(3750, 2.5), kRule), kRule);  // short ones stay as they are

  WindowWork pairs = narrow(1000, 7.7);  // a team of two needs more of them
  pairs.feature_tiles = 2;
  pairs.team = 2;
  EXPECT_EQ(whole_tiles(pairs, kRule), kRule);
  pairs.windows *= 2;
  pairs.tiles *= 2;
  EXPECT_GE(whole_tiles(pairs, kRule), 8);

  WindowWork alone = narrow(3750, 7.7);
  alone.team = 1;  // no window is shared
  EXPECT_EQ(whole_tiles(alone, kRule), kRule);
  WindowWork slow = narrow(3750, 7.7);
  slow.limits.whole = 7;
  EXPECT_EQ(whole_tiles(slow, kRule), kRule);
}

TEST(WindowCost, AMatrixWithoutWindowsHasNoWork) {
  const PartTiles of_warp = part_tiles(narrow(0, 0));
  EXPECT_GE(of_warp.part, 1);
  EXPECT_GE(of_warp.split, 1);
  EXPECT_EQ(whole_tiles(narrow(0, 0), 6), 6);
}

}  // namespace
}  // namespace spmmbench::window
