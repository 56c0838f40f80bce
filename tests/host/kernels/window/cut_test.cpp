#include "window/cut.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "format/tile_work.hpp"

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

TEST(WindowCut, FewWindowsHaveOneFeatureTileInACta) {
  EXPECT_EQ(cta_feature_tiles(4, 16, 4, kSms), 1);
  EXPECT_EQ(cta_feature_tiles(4, 150, 4, kSms), 2);  // 2 x 150 CTAs
  EXPECT_EQ(cta_feature_tiles(2, 264, 2, kSms), 2);  // two on each SM
  EXPECT_EQ(cta_feature_tiles(4, 527, 4, kSms), 2);  // teams of two
  EXPECT_EQ(cta_feature_tiles(4, 528, 4, kSms), 4);  // four on each SM
  EXPECT_EQ(cta_feature_tiles(2, 150, 1, kSms), 1);
  EXPECT_EQ(cta_feature_tiles(4, 0, 4, kSms), 1);
}

TEST(WindowCut, WindowsLikeTheOthersAreNotSplit) {
  for (const double mean : {20.0, 33.0, 47.0, 91.0}) {
    const PartTiles of_warp = part_tiles(narrow(313, mean));
    EXPECT_GT(4 * of_warp.part, mean) << mean;
  }
  // Too long for four warps.
  const PartTiles of_warp = part_tiles(narrow(313, 133));
  EXPECT_LT(4 * of_warp.part, 133);
}

TEST(WindowCut, FewTilesAreSpreadOverAllSms) {
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

TEST(WindowCut, ManyTilesMakeLongParts) {
  const PartTiles of_warp = part_tiles(narrow(10000, 10));
  EXPECT_EQ(of_warp.part, kMostPart);
  EXPECT_EQ(of_warp.split, kMostPart);
}

TEST(WindowCut, AWarpKeepsWindowsLikeTheOthersWhereTheyAreEnough) {
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

TEST(WindowCut, AMatrixWithoutWindowsHasNoWork) {
  const PartTiles of_warp = part_tiles(narrow(0, 0));
  EXPECT_GE(of_warp.part, 1);
  EXPECT_GE(of_warp.split, 1);
  EXPECT_EQ(whole_tiles(narrow(0, 0), 6), 6);
}

TEST(WindowCut, NoSpanIsLongerThanOneMayBe) {
  constexpr int kLongestRule = TileCut::kMaxSpanTiles;
  for (const double windows : {1.0, 50.0, 131.0, 132.0, 500.0, 5000.0, 1e6})
    for (const double mean : {1.0, 7.0, 12.5, 31.0, 64.0, 200.0, 1e5})
      for (const int team : {1, 2, 3, 4})
        for (const double feature_tiles : {1.0, 2.0, 16.0}) {
          WindowWork work = narrow(windows, mean);
          work.team = team;
          work.feature_tiles = feature_tiles;
          work.ctas_of_window = std::ceil(feature_tiles * team / 4);
          const PartTiles of_warp = part_tiles(work);
          EXPECT_GE(of_warp.split, 1);
          EXPECT_LE(of_warp.split, of_warp.part);
          EXPECT_LE(of_warp.part, TileCut::kMaxSpanTiles);
          EXPECT_GE(whole_tiles(work, 6), 6);
          EXPECT_LE(whole_tiles(work, kLongestRule), TileCut::kMaxSpanTiles);
        }
}

}  // namespace
}  // namespace spmmbench::window
