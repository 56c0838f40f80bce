// The height of windows that costs least.

#include "window/cost.hpp"

#include <gtest/gtest.h>

namespace spmmbench::window {
namespace {

constexpr double kManyRows = 1e6, kMultiprocessors = 132;

// Rows that share most of their columns with 16 neighbours, and half of them with 32.
constexpr WcsrEstimate kShared = {.gathered_share = {0.5, 0.25, 0.13},
                                  .stored_share = {0.5, 0.25, 0.13}};

int height(std::int64_t n, double rows = kManyRows, const WcsrEstimate& estimate = kShared) {
  return kWcsrHeights
      [best_height(estimate, rows, n, 2, dense_box_cost(Precision::fp16), kMultiprocessors).index];
}

TEST(WindowCost, RowsThatShareNothingTakeLowWindows) {
  constexpr WcsrEstimate kNothing = {.gathered_share = {1, 1, 1}, .stored_share = {1, 1, 1}};
  EXPECT_EQ(height(128, kManyRows, kNothing), 8);
}

TEST(WindowCost, AGivenHeightIsTakenWithItsOwnCost) {
  const auto at = [](std::optional<int> only) {
    return best_height(kShared, kManyRows, 128, 2, dense_box_cost(Precision::fp16),
                       kMultiprocessors, only);
  };
  const Height best = at({}), lowest = at(0);
  EXPECT_EQ(lowest.index, 0);
  EXPECT_NE(best.index, 0);
  EXPECT_GT(lowest.cost, best.cost);
}

TEST(WindowCost, PartOfALineOfBTakesAsLongAsAllOfIt) {
  EXPECT_EQ(height(128), 32);
  EXPECT_EQ(height(100), height(128));
  for (const std::int64_t n : {8, 32}) EXPECT_EQ(height(n), height(64)) << n;
}

TEST(WindowCost, AVectorTakesTallWindowsOnlyWhereTheyHoldLess) {
  constexpr WcsrEstimate kDense = {.gathered_share = {1. / 8, 1. / 16, 1. / 32},
                                   .stored_share = {1. / 8, 1. / 16, 1. / 32}};
  EXPECT_EQ(height(8, kManyRows, kDense), 32);
  EXPECT_EQ(height(1, kManyRows, kDense), 16);
  constexpr WcsrEstimate kSome = {.gathered_share = {0.45, 0.40, 0.38},
                                  .stored_share = {0.45, 0.40, 0.38}};
  EXPECT_EQ(height(1, kManyRows, kSome), 8);
  EXPECT_EQ(height(1, 4000, kDense), 8);  // 500 windows of 8 rows, 250 of 16
}

TEST(WindowCost, NarrowRowsOfBTakeTallerWindows) {
  constexpr WcsrEstimate kSome = {.gathered_share = {0.70, 0.62, 0.60},
                                  .stored_share = {0.70, 0.62, 0.60}};
  EXPECT_EQ(height(32, kManyRows, kSome), 8);
  EXPECT_EQ(height(16, kManyRows, kSome), 16);
}

TEST(WindowCost, FewRowsTakeLowerWindowsThatMoreMultiprocessorsShare) {
  EXPECT_EQ(height(128, 256), 16);
  EXPECT_EQ(height(128, 4000), 32);
  // 64 lines of B side by side are work enough for all.
  EXPECT_EQ(height(4096, 256), 32);
}

TEST(WindowCost, AnOrderIsWorthwhileWhereGathersOutweighWhatComesFromMemory) {
  const FormatCost format = dense_box_cost(Precision::fp16);
  const WcsrEstimate nothing = {.gathered_share = {1, 1, 1}, .stored_share = {1, 1, 1}};
  EXPECT_TRUE(worth_order(nothing, 1e4, 1e4, 1e6, 128, 2, format));
  EXPECT_FALSE(worth_order(nothing, 1e6, 1e6, 2e6, 128, 2, format));
  // The same share of so few bytes that the product does not wait for them.
  EXPECT_FALSE(worth_order(nothing, 512, 512, 5e4, 128, 2, format));
  EXPECT_TRUE(worth_order(nothing, 512, 512, 5e4, 512, 2, format));
}

TEST(WindowCost, NoOrderIsWorthwhileWhereMostRowsAreEmpty) {
  const FormatCost format = dense_box_cost(Precision::fp16);
  const WcsrEstimate nothing = {.gathered_share = {1, 1, 1}, .stored_share = {1, 1, 1}};
  EXPECT_TRUE(worth_order(nothing, 1e4, 39e4, 1e5, 1, 2, format));
  EXPECT_FALSE(worth_order(nothing, 1e4, 40e4, 1e5, 1, 2, format));
}

}  // namespace
}  // namespace spmmbench::window
