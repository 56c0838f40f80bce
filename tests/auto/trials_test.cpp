// What `auto` measures before the first launch, and what it keeps of that.

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "planted_kernels.hpp"

namespace spmmbench {
namespace {

TEST_F(AutoKernel, KeepsTheFastestTrialAloneAndCountsAll) {
  const auto first = prepare("tune=3")->bind({.n = 128}, stages_);
  const std::vector<std::string> names = tried(*first);
  ASSERT_EQ(names.size(), 3U);
  script.us = {{names[0], 30}, {names[1], 20}, {names[2], 10}};
  StageTimer stages;
  const auto prepared = prepare("tune=3");
  const auto plan = prepared->bind({.n = 128}, stages);
  EXPECT_EQ(pick(*plan).kernel, names[2]);
  EXPECT_EQ(measured_text(pick(*plan)),
            fmt::format("{} 30.0 us, {} 20.0 us, {} 10.0 us", names[0], names[1], names[2]));
  EXPECT_GT(stages.stages_ms().at("tune"), 0);
  plan->launch({}, {}, {});
}

TEST_F(AutoKernel, EachTrialBeginsWithAFlushedCache) {
  const auto plan = prepare("tune=3")->bind({.n = 128}, stages_);
  EXPECT_EQ(tried(*plan).size(), 3U);
  EXPECT_EQ(device_.flushes, 3U);
}

TEST_F(AutoKernel, ACThatIsLargerThanTheCacheNeedsNoFlush) {
  device_.device_info.l2_bytes = std::size_t{1} << 10;
  const auto plan = prepare("tune=3")->bind({.n = 128}, stages_);
  EXPECT_EQ(tried(*plan).size(), 3U);
  EXPECT_EQ(device_.flushes, 0U);
}

// What an event takes is then the same share of each.
TEST_F(AutoKernel, AllTrialsAreTimedInBatchesOfAsManyLaunchesHoweverLongTheFirstTakes) {
  const std::string first = pick(*prepare("tune=1")->bind({.n = 128}, stages_)).kernel;
  script.us = {{first, 15}};
  device_.batches.clear();
  const auto plan = prepare("tune=3")->bind({.n = 128}, stages_);
  EXPECT_EQ(tried(*plan).size(), 3U);
  EXPECT_EQ(device_.batches.size(), 1U);
  EXPECT_GT(*device_.batches.begin(), 2);
}

TEST_F(AutoKernel, WhatOneShapeRunsStaysWhileAnotherIsTuned) {
  const auto prepared = prepare("tune=3&calls=5000");
  std::vector<std::unique_ptr<Plan>> plans;
  for (const std::int64_t n : {1, 8, 64, 512, 4096}) {
    plans.push_back(prepared->bind({.n = n}, stages_));
    for (const auto& plan : plans) plan->launch({}, {}, {});
  }
  EXPECT_TRUE(std::any_of(plans.begin(), plans.end(),
                          [](const auto& plan) { return pick(*plan).measured(); }));
  EXPECT_FALSE(pick(*plans[0]).measured()) << "nothing pays for a vector";
}

TEST_F(AutoKernel, ARowOrderThatOthersHaveMadeCountsOnceForAllTrials) {
  script.asks_for_order = true;
  prepare("tune=3")->bind({.n = 128}, stages_);
  EXPECT_GE(stages_.stages_ms().at("tune"), KnownOrders::kMs);
  EXPECT_LT(stages_.stages_ms().at("tune"), 2 * KnownOrders::kMs);
}

TEST_F(AutoKernel, ARowOrderOnTheDeviceIsMadeOnceForAllTrialsAndShapes) {
  script.orders_on_device = true;
  const auto prepared = prepare("tune=3");
  for (const std::int64_t n : {64, 128})
    EXPECT_EQ(tried(*prepared->bind({.n = n}, stages_)).size(), 3U);
  EXPECT_EQ(script.made_orders, 1);
}

TEST_F(AutoKernel, ACopyOfAThatOthersHaveMadeIsNoPartOfTheTrials) {
  constexpr double kMs = 1000;
  const DeviceCsr there = copy_that_took(kMs);
  operand_.on_device = &there;
  prepare("tune=3")->bind({.n = 128}, stages_);
  EXPECT_EQ(stages_.stages_ms().at("upload"), kMs);
  EXPECT_LT(stages_.stages_ms().at("tune"), kMs);
}

TEST_F(AutoKernel, ATrialThatFailsIsLeftOutAndItsTimeCounts) {
  const std::vector<std::string> names = tried(*prepare("tune=3")->bind({.n = 128}, stages_));
  script.out_of_memory = {names[0]};
  StageTimer stages;
  const auto prepared = prepare("tune=3");
  EXPECT_NE(pick(*prepared->bind({.n = 128}, stages)).kernel, names[0]);
  EXPECT_GE(stages.stages_ms().at("tune"), 20);
}

TEST_F(AutoKernel, WithoutMemoryForTheTrialsTheBestPredictionIsTaken) {
  device_.largest = 1000;
  const auto prepared = prepare("tune=3");
  const auto plan = prepared->bind({.n = 128}, stages_);
  EXPECT_FALSE(pick(*plan).measured());
  plan->launch({}, {}, {});
}

TEST_F(AutoKernel, ARememberedWinnerThatNoLongerFitsIsMeasuredAgain) {
  set_cache_folder(folder());
  const std::string winner = pick(*prepare("tune=3")->bind({.n = 128}, stages_)).kernel;
  const auto again = prepare("tune=3")->bind({.n = 128}, stages_);
  EXPECT_TRUE(pick(*again).remembered);
  script.out_of_memory = {winner};
  const auto plan = prepare("tune=3")->bind({.n = 128}, stages_);
  EXPECT_NE(pick(*plan).kernel, winner);
}

TEST_F(AutoKernel, AsksForTheMemoryOfTheBestPredictionAlone) {
  const Options options = Spec::parse("auto?tune=3").options;
  const Problem problem{operand_, Shape{.n = 128}, options};
  EXPECT_EQ(check_support(kernel_, problem, device_.info()).device_bytes, kPlantedBytes);
}

TEST_F(AutoKernel, MeasuresClosePredictionsByDefault) {
  const auto measured = [&](const std::string& options) {
    return pick(*prepare(options)->bind({.n = 128}, stages_)).measured();
  };
  EXPECT_TRUE(measured("calls=0"));
  EXPECT_FALSE(measured("tune=1"));
  EXPECT_FALSE(measured("calls=100")) << "no trial pays";
}

TEST_F(AutoKernel, WhereTheBestTakesFarLongerThanPredictedMoreAreMeasured) {
  const std::string best = pick(*prepare("tune=1")->bind({.n = 128}, stages_)).kernel;
  script.us = {{best, 1e-3}};
  const std::size_t close = tried(*prepare("tune=8")->bind({.n = 128}, stages_)).size();
  script.us = {};
  script.us_of_others = 1e6;
  EXPECT_GT(tried(*prepare("tune=8")->bind({.n = 128}, stages_)).size(), close);
  EXPECT_EQ(tried(*prepare("tune=2")->bind({.n = 128}, stages_)).size(), 2U);
}

TEST_F(AutoKernel, IfAnyTrialPaysAllCompeteWithWhatTheBestTakes) {
  script.us_of_others = 1e6;
  const auto trials = [&](const std::string& calls) {
    return tried(*prepare("calls=" + calls)->bind({.n = 128}, stages_)).size();
  };
  EXPECT_EQ(trials("500"), 0U);
  EXPECT_GT(trials("5000"), 2U);
  EXPECT_EQ(trials("5000"), trials("200000")) << "of more calls, trials pay by more estimates";
}

TEST_F(AutoKernel, WhereNoOtherPredictionComesCloseNothingIsMeasured) {
  matrix_ = testing::drawn(512, 512, 50);
  const auto pick_now = [&] { return pick(*prepare("tune=8")->bind({.n = 128}, stages_)); };
  EXPECT_EQ(pick_now().kernel, "dense_cluster");
  EXPECT_FALSE(pick_now().measured());
  script.out_of_memory = {"dense_cluster"};
  EXPECT_TRUE(pick_now().measured()) << "the best prediction cannot be prepared";
}

// Rows of 12 columns at random, which hardly overlap.
TEST_F(AutoKernel, AnOrderThatIsNotExpectedToGainIsMeasuredButNotTakenUnmeasured) {
  std::mt19937 engine(1);
  std::vector<std::vector<std::int32_t>> rows(20'000);
  for (auto& row : rows) {
    std::set<std::int32_t> columns;
    while (columns.size() < 12) columns.insert(static_cast<std::int32_t>(engine() % rows.size()));
    row.assign(columns.begin(), columns.end());
  }
  matrix_ = testing::from_rows(static_cast<std::int64_t>(rows.size()), rows);
  const std::string search = "async_wcsr?order=search";
  script.us = {{search, 1}};
  const auto measured = prepare("tune=8")->bind({.n = 64}, stages_);
  ASSERT_LT(measured->report().metrics.at("feature_row_overlap"), 0.02) << "it was not asked";
  EXPECT_NE(tried(*measured).front(), search);
  EXPECT_EQ(pick(*measured).kernel, search);
  const auto unmeasured = prepare("tune=1")->bind({.n = 64}, stages_);
  EXPECT_NE(pick(*unmeasured).kernel, search);
}

#ifdef SPMMBENCH_TEST_RATES
TEST_F(AutoKernel, WhatWindowsGatherInAKnownOrderTellsWhetherItIsTried) {
  const std::string search = "async_wcsr?order=search";
  const auto tries_it = [&](const WcsrEstimate& windows) {
    known_windows = windows;
    const auto names = tried(*prepare("tune=8")->bind({.n = 8}, stages_));
    EXPECT_GT(names.size(), 1U);
    return std::ranges::find(names, search) != names.end();
  };
  EXPECT_TRUE(tries_it({{0.01, 0.01, 0.01}, {0.01, 0.01, 0.01}}));
  EXPECT_FALSE(tries_it({{50, 50, 50}, {50, 50, 50}}));
}
#endif

}  // namespace
}  // namespace spmmbench
