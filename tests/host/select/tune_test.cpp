// What `auto?tune` remembers, and the features of a matrix.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <thread>
#include <vector>

#include "cache_fixture.hpp"
#include "matrices.hpp"
#include "select/features.hpp"
#include "select/tune.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

class Remembering : public test::CacheTest {
 protected:
  void SetUp() override { set_cache_folder(folder()); }

  // The times of "a", "b" and "c"; counts what is measured.
  Tuned tuned(const CacheEntry& key, double budget_ms = 1e6) {
    return tune(
        {{"a", 1, 1}, {"b", 1, 1}, {"c", 1, 1}},
        [this](std::size_t i) {
          ++measured_;
          return us_[i];
        },
        budget_ms, key);
  }

  const CacheEntry key_ = {{"n", "128"}, {"device", "H"}};
  std::vector<double> us_ = {3, 1, 2};
  int measured_ = 0;
};

TEST_F(Remembering, TheFastestIsPickedAndNotMeasuredAgain) {
  const Tuned first = tuned(key_);
  EXPECT_EQ(first.picked, 1U);
  EXPECT_FALSE(first.remembered);
  EXPECT_EQ(measured_, 3);
  us_ = {1, 2, 3};
  const Tuned again = tuned(key_);
  EXPECT_EQ(again.picked, 1U);
  EXPECT_TRUE(again.remembered);
  EXPECT_EQ(again.measured_us, first.measured_us);
  EXPECT_EQ(measured_, 3);
}

TEST_F(Remembering, AnotherShapeOrOtherCandidatesAreMeasured) {
  tuned(key_);
  tuned({{"n", "64"}, {"device", "H"}});
  EXPECT_EQ(measured_, 6);
  tune(
      {{"a", 1}, {"b", 1}}, [this](std::size_t) { return double(++measured_); }, 1e6, key_);
  EXPECT_EQ(measured_, 8);
  tune(
      {{"c", 1}, {"b", 1}}, [this](std::size_t) { return double(++measured_); }, 1e6, key_);
  EXPECT_EQ(measured_, 10);
  EXPECT_EQ(files().size(), 4U);
}

TEST_F(Remembering, TimesComeBackInTheOrderOfTheTrialsAndOfEqualOnesTheFirstIsPicked) {
  us_ = {1, 1};
  for (const bool remembered : {false, true}) {
    const Tuned out = tune(
        {{"z", 1}, {"a", 1}}, [this](std::size_t i) { return us_[i]; }, 1e6, key_);
    EXPECT_EQ(out.remembered, remembered);
    EXPECT_EQ(out.picked, 0U);
    EXPECT_EQ(out.measured_us.front().first, 0U);
  }
}

TEST_F(Remembering, NothingIsKeptWithoutAFolder) {
  set_cache_folder("");
  tuned(key_);
  tuned(key_);
  EXPECT_EQ(measured_, 6);
  EXPECT_TRUE(files().empty());
}

TEST_F(Remembering, AFileThatCannotBeUsedCostsOneWarningAndIsReplaced) {
  tuned(key_);
  expect_replaced(
      {{"\"version\": 1", "\"version\": 2"},
       {"\"128\"", "\"129\""},                      // of another key
       {"\"picked\": \"b\"", "\"picked\": \"z\""},  // of no candidate
       {"\"b\": \"1\"", "\"b\": \"-1\""},
       {"\"b\": \"1\"", "\"b\": \"0\""},
       {"\"b\": \"1\"", "\"b\": 1"}},
      [this] {
        measured_ = 0;
        EXPECT_EQ(tuned(key_).picked, 1U);
        EXPECT_EQ(measured_, 3);
      },
      [this] { EXPECT_TRUE(tuned(key_).remembered); });
}

TEST_F(Remembering, AFolderThatCannotBeWrittenCostsAWarningAndNoMore) {
  std::ofstream(folder()) << "a file";
  expect_one_line(warnings([&] {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(tuned(key_).picked, 1U);
  }));
}

TEST_F(Remembering, ATrialThatFailsIsLeftOut) {
  const auto with_failures = [this](std::vector<std::size_t> unsupported,
                                    std::vector<std::size_t> too_large, const CacheEntry& key,
                                    double budget_ms = 1e6) {
    return tune(
        {{"a", 1, 1}, {"b", 1, 1}, {"c", 1, 1}},
        [&](std::size_t i) {
          ++measured_;
          if (std::ranges::find(unsupported, i) != unsupported.end()) throw Unsupported("no");
          if (std::ranges::find(too_large, i) != too_large.end()) throw OutOfMemory("too large");
          return us_[i];
        },
        budget_ms, key);
  };
  const Tuned fastest_failed = with_failures({1}, {}, key_);
  EXPECT_EQ(fastest_failed.picked, 2U);
  EXPECT_EQ(fastest_failed.measured_us.size(), 2U);
  const Tuned again = with_failures({}, {}, key_);
  EXPECT_TRUE(again.remembered);
  EXPECT_EQ(again.measured_us, fastest_failed.measured_us) << "what failed is not kept";

  const CacheEntry other = {{"n", "64"}};
  EXPECT_EQ(with_failures({}, {1}, other).picked, 2U);
  EXPECT_FALSE(with_failures({}, {}, other).remembered) << "another time memory may suffice";

  measured_ = 0;
  EXPECT_EQ(with_failures({0}, {}, {{"n", "1"}}, 0).picked, 1U) << "one is measured in any case";
  EXPECT_EQ(measured_, 2);
  EXPECT_THROW(with_failures({0, 2}, {1}, {{"n", "2"}}), Unsupported) << "the first failure";
  EXPECT_THROW(with_failures({1, 2}, {0}, {{"n", "2"}}), OutOfMemory);
  EXPECT_FALSE(with_failures({}, {}, {{"n", "2"}}).remembered);
}

TEST_F(Remembering, NoTrialBeginsThatWouldEndAfterTheBudget) {
  const Tuned out = tune(
      {{"a", 1, 50}, {"b", 1, 1e5}, {"c", 1, 0}},
      [this](std::size_t i) {
        ++measured_;
        return us_[i];
      },
      1000, key_);
  EXPECT_EQ(measured_, 2) << "b would take too long to prepare";
  EXPECT_EQ(out.picked, 2U);
  EXPECT_EQ(tuned({}, 0).measured_us.size(), 1U) << "the best prediction is always measured";
}

TEST_F(Remembering, ATrialThatIsNotWorthItIsLeftOut) {
  const auto without_b = [this](std::size_t i) {
    return i == 1 ? std::nullopt : std::optional(us_[i]);
  };
  const Tuned out = tune({{"a", 1, 1}, {"b", 1, 1}, {"c", 1, 1}}, without_b, 1e6, key_);
  EXPECT_EQ(out.picked, 2U);
  EXPECT_EQ(out.measured_us.size(), 2U);
  EXPECT_EQ(tuned(key_).picked, 2U) << "remembered without it";
}

TEST(Tune, WithCallsATrialMustBeExpectedToSaveMoreThanItCosts) {
  const Estimate best{7.9, 1}, quick{8, 6};  // 6.4 ms with its measurement
  EXPECT_FALSE(worth_trying(best, quick, 10, 1'000, 8)) << "2 us in 1,000 calls are 2 ms";
  EXPECT_TRUE(worth_trying(best, quick, 10, 10'000, 8));
  EXPECT_FALSE(worth_tuning(best, quick, 1'000, 8));
  EXPECT_FALSE(worth_tuning(best, quick, 9'000, 8)) << "`best` would have to be measured as well";
  EXPECT_TRUE(worth_tuning(best, quick, 12'000, 8)) << "`best` may take 8.7 us";
  const Estimate lengthy{10'000, 0};
  EXPECT_FALSE(worth_trying(best, lengthy, 10'500, 100, 8)) << "six launches take 60 ms, for 50";
}

TEST(Tune, WhereCallsTakeAHundredTimesAsLongAsATrialAKernelIsTriedThatMayTakeLessThanPredicted) {
  const Estimate best{10, 1}, other{12, 1};  // 1.3 ms with its measurement
  EXPECT_FALSE(worth_trying(best, other, 10, 12'000, 8)) << "1.06 % of the time of the calls";
  EXPECT_FALSE(worth_tuning(best, other, 12'000, 8));
  EXPECT_TRUE(worth_trying(best, other, 10, 13'000, 8)) << "perhaps it takes 8.6 us";
  EXPECT_TRUE(worth_tuning(best, other, 13'000, 8));
  EXPECT_FALSE(worth_trying(best, {15, 1}, 10, 1'000'000, 8));
}

TEST(Tune, WithoutCallsPredictionsThatAreCloseAreTried) {
  const Estimate best{10, 1};
  EXPECT_TRUE(worth_trying(best, {13, 0}, 10, 0, 8));
  EXPECT_FALSE(worth_trying(best, {15, 0}, 10, 0, 8));
  EXPECT_FALSE(worth_trying(best, {13.5, 0}, 10, 0, 128)) << "wide ones are predicted better";
  EXPECT_FALSE(worth_trying(best, {15, 0}, 5, 0, 8));
  EXPECT_TRUE(worth_trying(best, {13, 0}, 5, 0, 8))
      << "where the best is faster than predicted, no fewer are tried";
}

TEST(Tune, WideOnesWhoseTrialTakesManyProductsNeedABetterChance) {
  const Estimate best{10, 1};
  EXPECT_TRUE(worth_trying(best, {12.8, 0}, 10, 0, kWideColumns)) << "28 products";
  EXPECT_FALSE(worth_trying(best, {12.8, 0.4}, 10, 0, kWideColumns)) << "68 products";
  EXPECT_TRUE(worth_trying(best, {12.3, 0.4}, 10, 0, kWideColumns));
  EXPECT_TRUE(worth_trying(best, {12.8, 0.4}, 10, 0, kWideColumns - 1));
}

TEST(Tune, WithoutCallsATrialHasToPayWithinManyCallsShouldItBeFasterThanPredicted) {
  const Estimate best{10, 1};  // 8 us may take 5.7, which saves 86 ms in 20,000 calls
  EXPECT_TRUE(worth_trying(best, {8, 80}, 10, 0, 8));
  EXPECT_FALSE(worth_trying(best, {8, 90}, 10, 0, 8));
}

TEST(Tune, WhereTheFastestTakesLongerThanPredictedOthersAreTried) {
  const Estimate best{10, 1}, far{20, 1};
  EXPECT_FALSE(worth_trying(best, far, 14, 0, 8));
  EXPECT_TRUE(worth_trying(best, far, 15, 0, 8)) << "20 us are predicted, perhaps it takes 14";
}

TEST(Tune, TheOrderThatAHasIsLeftOutWhereAKnownOneKeepsItsPromise) {
  EXPECT_TRUE(takes_far_longer({11, 1}, {10, 1}, 9));
  EXPECT_TRUE(takes_far_longer({11, 1}, {10, 1}, 10.1));
  EXPECT_FALSE(takes_far_longer({11, 1}, {10, 1}, 10.5)) << "natural order may take 11";
  EXPECT_FALSE(takes_far_longer({10.5, 1}, {10, 1}, 9));
}

TEST(Tune, WhereAKernelTakesLessThanEstimatedItsEstimatesWithOtherOptionsAreTooLong) {
  EstimatesByTrials by_trials;
  by_trials.took({"one", {10, 1}}, 8);
  by_trials.took({"two", {10, 1}}, 15);
  by_trials.took({"one?order=search", {10, 1}}, 9);
  EXPECT_DOUBLE_EQ(by_trials.of({"one?order=search", {20, 3}}).us, 16);
  EXPECT_DOUBLE_EQ(by_trials.of({"one?order=search", {20, 3}}).prepare_ms, 3);
  EXPECT_DOUBLE_EQ(by_trials.of({"two?order=search", {20, 1}}).us, 20) << "not the reverse";
  EXPECT_DOUBLE_EQ(by_trials.of({"three", {20, 1}}).us, 20);
}

TEST(Tune, NothingIsMeasuredWhereNoOtherWouldBeTriedThoughTheBestTakesLonger) {
  const auto may_win = [](double us, std::int64_t n, bool by_sizes = false) {
    return any_may_win(
        {{"best", {10, 1}, Standing::full, false, by_sizes}, {"far", {30, 1}}, {"other", {us, 1}}},
        0, n);
  };
  EXPECT_FALSE(any_may_win({{"best", {10, 1}}}, 0, 8));
  EXPECT_TRUE(may_win(17, 8)) << "perhaps 12.2 us, not 12.5";
  EXPECT_FALSE(may_win(18, 8));
  EXPECT_FALSE(may_win(17, kWideColumns)) << "wide ones may take 1.3 x less";
  EXPECT_TRUE(may_win(13, kWideColumns));
  EXPECT_FALSE(may_win(14, kWideColumns, true)) << "the best is known to take 10";
  EXPECT_TRUE(may_win(14, kWideColumns));
}

TEST_F(Remembering, WhatWasSpentIsSpent) {
  set_cache_folder("");
  const auto measured = [&](double budget_ms) {
    const auto slow = [this](std::size_t i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return us_[i];
    };
    return tune({{"a", 1, 0}, {"b", 1, 0}}, slow, budget_ms, key_).measured_us.size();
  };
  EXPECT_EQ(measured(10), 1U);
  EXPECT_EQ(measured(10'000), 2U);
}

// Rows of these lengths, whose columns do not matter.
template <class Length>
CsrMatrix of_lengths(std::int64_t rows, std::int64_t cols, const Length& length) {
  CsrMatrix a;
  a.rows = rows;
  a.cols = cols;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int32_t column = 0; column < length(row); ++column) a.col_idx.push_back(column);
    a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
  }
  a.values.assign(a.col_idx.size(), 1);
  return a;
}

TEST(Features, TheLongestRowIsExactWhereItIsFarAboveTheMean) {
  EXPECT_EQ(
      features_of(of_lengths(1000, 5000, [](auto row) { return row == 777 ? 1200 : 3; })).max_row,
      1200);
}

TEST(Features, ALongRowIsFoundThoughOthersHoldMoreAndNoSampleMeetsIt) {
  const CsrMatrix a = of_lengths(100'000, 5000, [](auto row) {
    return row == 55'555 ? 700 : row / 64 == 100 ? 40 : 10;
  });
  EXPECT_EQ(features_of(a).max_row, 700);
  EXPECT_DOUBLE_EQ(features_of(a).mean_row, static_cast<double>(a.nnz()) / 100'000);
}

TEST(Features, ALongRowIsFoundAmongLongRowsThatAreAllAlike) {
  const CsrMatrix a = of_lengths(20'000, 5000, [](auto row) {
    return row == 15'000 ? 800 : row < 10'000 ? 2 : 8;
  });
  EXPECT_EQ(features_of(a).max_row, 800);
}

TEST(Features, AStoredZeroIsNoEntryOfAGroupOfFour) {
  CsrMatrix a = of_lengths(256, 256, [](auto) { return 256; });
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] = i % 4 < 2 ? 1 : 0;
  EXPECT_EQ(features_of(a).most_of_four, 2);
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] = i % 4 < 3 ? 1 : 0;
  EXPECT_EQ(features_of(a).most_of_four, 3);
}

// Two bands of 128 rows, each with 128 columns of its own, of which a row has every fifth.
TEST(Features, ABandThatIsLookedAtTwiceHasAllOfItsBlocksBothTimes) {
  CsrMatrix a;
  a.rows = a.cols = 256;
  for (std::int32_t row = 0; row < 256; ++row) {
    for (std::int32_t column = row % 5; column < 128; column += 5)
      a.col_idx.push_back(row / 128 * 128 + column);
    a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
  }
  a.values.assign(a.col_idx.size(), 1);
  EXPECT_EQ(features_of(a).band_blocks, 2);
  EXPECT_NEAR(features_of(a).block_fill, 0.2, 0.005);
}

// Row r has every `step`-th column of [first(r), first(r) + length).
template <class First>
CsrMatrix stripes(std::int64_t rows, std::int64_t cols, std::int64_t length, std::int64_t step,
                  const First& first) {
  CsrMatrix a;
  a.rows = rows;
  a.cols = cols;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < length; column += step)
      a.col_idx.push_back(static_cast<std::int32_t>(first(row) + column));
    a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
  }
  a.values.assign(a.col_idx.size(), 1);
  return a;
}

TEST(Features, BlocksOfAFullBandAreCountedWhereverItsColumnsLie) {
  const CsrMatrix a = stripes(1024, 8 * 512, 512, 1, [](auto row) { return row / 128 * 512; });
  const MatrixFeatures features = features_of(a);
  EXPECT_EQ(features.band_blocks, 512 / 64);
  EXPECT_EQ(features.block_fill, 1);
}

TEST(Features, BlocksAreCountedWhereRowsAreAlike) {
  // Every second block of 64 columns: 148 of them, 9,472 nonzeros in every row.
  CsrMatrix a = stripes(256, 18944, 9472, 1, [](auto) { return 0; });
  for (std::int32_t& column : a.col_idx) column = column / 64 * 128 + column % 64;
  const MatrixFeatures features = features_of(a);
  EXPECT_NEAR(features.band_blocks, 148, 1);
  EXPECT_NEAR(features.block_fill, 1, 0.01);
}

TEST(Features, BlocksAreNotCountedWhereWindowsShareTooFewColumnsToFillThem) {
  // Every row has columns of its own among 4,096, or shares 32 of them with 31 others.
  const CsrMatrix apart = stripes(1024, 4096, 4096, 128, [](auto row) { return row % 128; });
  EXPECT_EQ(features_of(apart).block_fill, 0);
  EXPECT_EQ(features_of(apart).band_blocks, 0);
  const CsrMatrix shared = stripes(1024, 4096, 4096, 8, [](auto row) { return row / 32 % 8; });
  EXPECT_NEAR(features_of(shared).block_fill, 1.0 / 8, 0.01);
  static_assert(kLeastBlockFill < 1.0 / 8);
}

// Each row has every 40th of 4,090 columns, and 31 others share none of them: 2.5 % of the entries.
TEST(Features, AllBlocksCountInAMatrixThatIsDenseEnough) {
  const CsrMatrix a = stripes(1024, 4090, 4050, 40, [](auto row) { return row % 40; });
  const MatrixFeatures features = features_of(a);
  EXPECT_EQ(features.band_blocks, 64);
  EXPECT_DOUBLE_EQ(features.block_fill, features.mean_row / 4096);
  static_assert(kLeastBlockFill < 0.024);
}

TEST(Features, AreTakenFromASample) {
  // 8 million nonzeros: taking features costs a tenth of reading all of them once. The least of
  // several tries, taken in turns, since the machine may be busy.
  const CsrMatrix a = stripes(2048, 8192, 8192, 2, [](auto) { return 0; });
  using Duration = std::chrono::steady_clock::duration;
  const auto time_of = [](const auto& body) -> Duration {
    const auto start = std::chrono::steady_clock::now();
    body();
    return std::chrono::steady_clock::now() - start;
  };
  const auto take = [&] { EXPECT_EQ(features_of(a).rows, 2048); };
  const auto read = [&] {
    EXPECT_GT(std::accumulate(a.col_idx.begin(), a.col_idx.end(), std::int64_t{0}), 0);
  };
  constexpr int kTurns = 20;
  Duration taking = time_of(take);
  Duration reading = time_of(read);
  for (int turn = 0; turn < kTurns && 2 * taking >= reading; ++turn) {
    taking = std::min(taking, time_of(take));
    reading = std::min(reading, time_of(read));
  }
  EXPECT_LT(2 * taking, reading);
}

TEST(Features, GroupsOfFourColumnsAreCountedWhereTheyAreAligned) {
  const auto most = [](const std::vector<std::int32_t>& columns) {
    return features_of(testing::from_rows(32, std::vector(256, columns))).most_of_four;
  };
  EXPECT_EQ(most({0, 3, 5, 6, 8, 12, 13}), 2);
  EXPECT_EQ(most({2, 3, 4, 5}), 2);
  EXPECT_EQ(most({0, 3, 5, 6, 7, 12, 13}), 3);
  std::vector<std::vector<std::int32_t>> rows(256, {0, 1});
  std::fill(rows.begin() + 128, rows.end(), std::vector<std::int32_t>{0, 1, 2});
  EXPECT_EQ(features_of(testing::from_rows(32, rows)).most_of_four, 3) << "in any sampled row";
  EXPECT_EQ(features_of(testing::from_rows(128, rows)).most_of_four, 4) << "too sparse to ask";
}

}  // namespace
}  // namespace spmmbench
