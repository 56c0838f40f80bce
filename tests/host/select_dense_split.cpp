#include "select/dense_split.hpp"

#include <gtest/gtest.h>

namespace spmmbench::dense_cluster {
namespace {

constexpr int kSms = 132;  // of an H200

TEST(DenseSplit, IsTheDivisionThatIsExpectedToTakeLeast) {
  for (const std::int64_t n : {1, 8, 64, 100, 512})
    for (const std::int64_t k : {64, 512, 4608}) {
      const Split best = choose_split(512, k, n, Layout::row_major, kSms);
      for (const int columns : kTileWidths) {
        if (n <= kNarrowColumns && columns != kNarrowTile) continue;
        for (int cluster = 1; cluster <= most_cluster(columns); cluster *= 2) {
          if (cluster > tiles_of(k, kTileK)) continue;
          Split other{columns, cluster, false, 0};
          other.whole_sm = takes_whole_sm(ctas_of(512, n, other), cluster, kSms);
          EXPECT_LE(best.us, expected_us(512, k, n, Layout::row_major, other, kSms))
              << columns << " columns, " << cluster << " CTAs, K = " << k << ", N = " << n;
        }
      }
    }
}

TEST(DenseSplit, DividesALongKAndNotAShortOne) {
  EXPECT_GT(choose_split(512, 4608, 64, Layout::col_major, kSms).cluster, 1);
  EXPECT_EQ(choose_split(2048, 256, 64, Layout::col_major, kSms).cluster, 1);
}

TEST(DenseSplit, TakesWhatIsWantedAsFarAsKAllows) {
  const Split wide = choose_split(512, 2048, 64, Layout::row_major, kSms, 64, 8);
  EXPECT_EQ(wide.tile_columns, 64);
  EXPECT_EQ(wide.cluster, 8);
  // A tile of 16 columns has work for four CTAs, and a K of 130 has three steps.
  EXPECT_EQ(choose_split(512, 2048, 64, Layout::row_major, kSms, 16, 8).cluster, 4);
  EXPECT_EQ(choose_split(512, 130, 64, Layout::row_major, kSms, 64, 8).cluster, 2);
  EXPECT_EQ(choose_split(512, 1, 64, Layout::row_major, kSms, 64, 8).cluster, 1);
}

TEST(DenseSplit, NarrowRowMajorBHasTheNarrowestTile) {
  EXPECT_EQ(choose_split(512, 2048, kNarrowColumns, Layout::row_major, kSms, 64).tile_columns,
            kNarrowTile);
  EXPECT_EQ(choose_split(512, 2048, kNarrowColumns, Layout::col_major, kSms, 64).tile_columns, 64);
  EXPECT_EQ(choose_split(512, 2048, kNarrowColumns + 1, Layout::row_major, kSms, 64).tile_columns,
            64);
  EXPECT_LT(stage_bytes(TileB::narrow, kNarrowTile), stage_bytes(TileB::row_major, kNarrowTile));
}

TEST(DenseSplit, LeavesAWholeMultiprocessorToACtaWhileThereAreEnough) {
  EXPECT_TRUE(choose_split(512, 2048, 64, Layout::row_major, kSms, 64, 8).whole_sm);
  EXPECT_FALSE(choose_split(2048, 2048, 64, Layout::row_major, kSms, 64, 8).whole_sm);
  EXPECT_FALSE(choose_split(8192, 8192, 64, Layout::row_major, kSms).whole_sm);
}

TEST(DenseSplit, AnEmptyProductHasADivision) {
  EXPECT_GT(choose_split(0, 0, 0, Layout::row_major, kSms).tile_columns, 0);
}

}  // namespace
}  // namespace spmmbench::dense_cluster
