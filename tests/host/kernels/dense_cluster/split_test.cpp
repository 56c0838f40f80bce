#include "dense_cluster/split.hpp"

#include <gtest/gtest.h>

namespace spmmbench::dense_cluster {
namespace {

constexpr int kSms = 132;  // of an H200

TEST(DenseSplit, IsTheDivisionThatIsExpectedToTakeLeast) {
  for (const int value_bytes : {1, 2})
    for (const std::int64_t n : {1, 8, 64, 100, 512})
      for (const std::int64_t k : {64, 512, 4608}) {
        const Extents of{512, k, n, Layout::row_major, value_bytes};
        const Split best = choose_split(of, kSms);
        for (const Tile& tile : kTiles) {
          if (!may_take(tile, of)) continue;
          for (int cluster = 1; cluster <= most_cluster(tile.columns); cluster *= 2) {
            if (cluster > tiles_of(k, tile_k(value_bytes))) continue;
            for (const bool whole_sm : {true, false}) {
              if (tile == kLargestTile && !whole_sm) continue;
              const Split other{tile, cluster, whole_sm, 0};
              EXPECT_LE(best.us, expected_us(of, other, kSms))
                  << tile.rows << " rows, " << tile.columns << " columns, " << cluster
                  << " CTAs, K = " << k << ", N = " << n << ", " << value_bytes << " bytes";
            }
          }
        }
      }
}

TEST(DenseSplit, DividesALongKAndNotAShortOne) {
  EXPECT_GT(choose_split({512, 4608, 64, Layout::col_major}, kSms).cluster, 1);
  EXPECT_EQ(choose_split({2048, 256, 64, Layout::col_major}, kSms).cluster, 1);
}

TEST(DenseSplit, TakesWhatIsWantedAsFarAsKAllows) {
  const auto wanted = [](std::int64_t k, const Wanted& want) {
    return choose_split({512, k, 64, Layout::row_major}, kSms, want);
  };
  const Split wide = wanted(2048, {.rows = 64, .columns = 64, .cluster = 8});
  EXPECT_EQ(wide.tile, (Tile{64, 64}));
  EXPECT_EQ(wide.cluster, 8);
  EXPECT_EQ(wanted(2048, {.rows = 128}).tile.rows, 128);
  // A tile of 16 columns has 64 rows and work for four CTAs, and a K of 130 has three steps.
  const Split narrow = wanted(2048, {.rows = 128, .columns = 16, .cluster = 8});
  EXPECT_EQ(narrow.tile, (Tile{64, 16}));
  EXPECT_EQ(narrow.cluster, 4);
  EXPECT_EQ(wanted(130, {.columns = 64, .cluster = 8}).cluster, 2);
  EXPECT_EQ(wanted(1, {.columns = 64, .cluster = 8}).cluster, 1);
}

TEST(DenseSplit, NarrowRowMajorBHasANarrowTile) {
  const auto tile = [](std::int64_t n, Layout layout) {
    return choose_split({512, 2048, n, layout}, kSms, {.columns = 64}).tile;
  };
  EXPECT_TRUE(takes_narrow_b(tile(kNarrowColumns, Layout::row_major)));
  EXPECT_EQ(tile(kNarrowColumns, Layout::col_major).columns, 64);
  EXPECT_EQ(tile(kNarrowColumns + 1, Layout::row_major).columns, 64);
  EXPECT_LT(stage_bytes(TileB::narrow, {64, 16}), stage_bytes(TileB::row_major, {64, 16}));
}

TEST(DenseSplit, EightBitsTakeHalfOfTheStages) {
  const Split split{{64, 64}, 2};
  const Extents halves{512, 2048, 64, Layout::row_major},
      bytes{512, 2048, 64, Layout::row_major, 1};
  EXPECT_EQ(steps_of(halves, split), 16);
  EXPECT_EQ(steps_of(bytes, split), 8);
  EXPECT_EQ(2 * copied_bytes(bytes, split), copied_bytes(halves, split));
}

TEST(DenseSplit, EightBitsOfRowMajorBAreTurnedWhereColumnsAreFew) {
  for (const std::int64_t n : {2, 16, 17, 32, 33, 64}) {
    const bool few = n <= kTurnedColumns;
    const Extents rows{512, 2048, n, Layout::row_major, 1};
    EXPECT_EQ(tile_b_of(rows), n <= kTurnedNarrowColumns ? TileB::turned_narrow
                               : few                     ? TileB::turned
                                                         : TileB::transposed);
    // The nearest tile to the one that is wanted.
    EXPECT_EQ(choose_split(rows, kSms, {.columns = 16}).tile.columns, few ? 16 : 64);
    EXPECT_EQ(choose_split(rows, kSms, {.columns = 128}).tile.rows == 64, few);
    EXPECT_EQ(tile_b_of({512, 2048, n, Layout::col_major, 1}), TileB::col_major);
  }
}

TEST(DenseSplit, LeavesAWholeMultiprocessorToACtaWhileThereAreEnough) {
  const Wanted wanted{.rows = 64, .columns = 64, .cluster = 8};
  EXPECT_TRUE(choose_split({512, 2048, 64, Layout::row_major}, kSms, wanted).whole_sm);
  EXPECT_FALSE(choose_split({2048, 2048, 64, Layout::row_major}, kSms, wanted).whole_sm);
}

TEST(DenseSplit, TheLargestTileHasAWholeMultiprocessor) {
  // 128 CTAs in clusters of four do not find room at once, so halves would be expected to be
  // faster.
  const Wanted wanted{.rows = 128, .columns = 128, .cluster = 4};
  const Split whole = choose_split({1024, 2048, 512, Layout::row_major}, kSms, wanted);
  EXPECT_TRUE(whole.whole_sm);
  Split halves = whole;
  halves.whole_sm = false;
  EXPECT_LT(expected_us({1024, 2048, 512, Layout::row_major}, halves, kSms), whole.us);
}

TEST(DenseSplit, ALargeProductHasTallTiles) {
  EXPECT_EQ(choose_split({4267, 4267, 512, Layout::row_major}, kSms).tile, kLargestTile);
  EXPECT_EQ(choose_split({512, 512, 64, Layout::row_major}, kSms).tile.rows, 64);
}

TEST(DenseSplit, AnEmptyProductHasADivision) {
  EXPECT_GT(choose_split({0, 0, 0, Layout::row_major}, kSms).tile.columns, 0);
}

// Copies of 16 bytes may write behind it.
TEST(DenseSplit, ASingleColumnIsNotStoredByCopies) {
  for (const std::int64_t m : {100, 16385, 50257, 200000})
    for (const int columns : {16, 64, 128})
      EXPECT_LT(
          choose_split({m, 512, 1, Layout::col_major}, kSms, {.columns = columns}).tile.columns,
          kCopiedColumns);
}

}  // namespace
}  // namespace spmmbench::dense_cluster
