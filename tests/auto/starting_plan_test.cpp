// How a plan of `auto` changes between launches.

#include <string>

#include "planted_kernels.hpp"

namespace spmmbench {
namespace {

TEST_F(AutoKernel, WhatTheCopyOfATookCountsAsProducts) {
  for (const auto& [ms, kernel] : {std::pair{0.0, "csr_merge"}, {0.5, "jagged_slices"}}) {
    const DeviceCsr there = copy_that_took(ms);
    operand_.on_device = &there;
    const auto prepared = prepare("");
    const auto plan = prepared->bind({.n = 8}, stages_);
    launch(*plan, 2);
    EXPECT_EQ(pick(*plan).kernel, kernel) << ms << " ms";
  }
}

TEST_F(AutoKernel, WithoutCallsAndTuneItStartsWithPlainCsrAndPreparesNothingElse) {
  const auto prepared = prepare("");
  const auto plan = prepared->bind({.n = 128}, stages_);
  launch(*plan, 1);
  EXPECT_EQ(pick(*plan).kernel, "csr_merge");
  EXPECT_EQ(pick(*plan).first, "csr_merge");
  EXPECT_TRUE(pick(*plan).why.empty()) << "nothing was compared";
  EXPECT_EQ(script.prepared.size(), 1U);
  EXPECT_FALSE(stages_.stages_ms().contains("choose"));
}

TEST_F(AutoKernel, WhileItIsLaunchedItComesToTheFastest) {
  script.us = {{"csr_merge", 50}, {"csr_row_split", 5}};
  const auto prepared = prepare("");
  const auto plan = prepared->bind({.n = 128}, stages_);
  launch(*plan, kMany);
  EXPECT_EQ(pick(*plan).kernel, "csr_row_split");
  EXPECT_TRUE(pick(*plan).measured());
  EXPECT_EQ(script.prepared.size(), 1U) << "the others are freed";
  EXPECT_FALSE(plan->prepares_next());
}

TEST_F(AutoKernel, BetweenGrowingNumbersOfLaunchesNothingIsPrepared) {
  const DeviceCsr there = copy_that_took(0);
  operand_.on_device = &there;
  const auto prepared = prepare("");
  const auto plan = prepared->bind({.n = 128}, stages_);
  std::vector<int> due;
  for (int i = 0; i < 40; ++i) {
    if (plan->prepares_next()) due.push_back(i);
    launch(*plan, 1);
  }
  EXPECT_EQ(due, (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 27, 33}));
}

TEST_F(AutoKernel, OrdersThatTakeLongAreSoughtOnceProductsPayForThem) {
  constexpr std::int64_t kWide = 1024;  // columns of a B that the cache does not hold
  const DeviceCsr there = copy_that_took(0);
  operand_.on_device = &there;
  const auto prepared = prepare("");
  const auto plan = prepared->bind({.n = kWide}, stages_);
  script.thorough = 0;
  launch(*plan, 100);
  EXPECT_GT(script.prepared.size(), 0U);
  EXPECT_EQ(script.thorough, 0);
  launch(*plan, kMany);
  EXPECT_GT(script.thorough, 0);
  EXPECT_FALSE(plan->prepares_next()) << "it is settled";
  for (const auto& [options, seeks] :
       {std::pair{"calls=100", false}, {"calls=100000000", true}, {"tune=2", true}}) {
    script.thorough = 0;
    prepare(options)->bind({.n = kWide}, stages_);
    EXPECT_EQ(script.thorough > 0, seeks) << options;
  }
}

TEST_F(AutoKernel, ACaptureChangesNothingAndWhatItLaunchedStays) {
  const auto prepared = prepare("");
  const auto plan = prepared->bind({.n = 128}, stages_);
  launch(*plan, 1);
  device_.capturing = true;
  launch(*plan, kMany);
  EXPECT_EQ(pick(*plan).kernel, "csr_merge");
  device_.capturing = false;
  script.us = {{"csr_merge", 50}, {"csr_row_split", 5}};
  launch(*plan, kMany);
  EXPECT_EQ(pick(*plan).kernel, "csr_row_split");
  EXPECT_EQ(script.prepared.size(), 2U) << "the graph may launch csr_merge";
}

TEST_F(AutoKernel, WithoutMemoryForMoreItStaysWithThePlanThatItHas) {
  script.us = {{"csr_merge", 50}};
  const auto prepared = prepare("");
  const auto plan = prepared->bind({.n = 128}, stages_);
  for (const char* name :
       {"csr_row_split", "async_wcsr", "async_wcsr?order=search", "jagged_slices", "rsh",
        "cusparse_csr_alg2", "cusparse_csr_default", "gap_slices", "dense_cluster"})
    script.out_of_memory.insert(name);
  device_.largest = 1000;
  launch(*plan, kMany);
  EXPECT_EQ(pick(*plan).kernel, "csr_merge");
}

TEST_F(AutoKernel, SettledItMeasuresAtOnceAndLaunchesPrepareNothing) {
  script.us = {{"csr_merge", 50}, {"csr_row_split", 5}};
  const auto prepared = prepare("");
  const auto plan = prepared->bind({.n = 128}, stages_);
  plan->settle(stages_);
  EXPECT_EQ(pick(*plan).kernel, "csr_row_split");
  EXPECT_EQ(pick(*plan).first, "csr_merge");
  EXPECT_GT(stages_.stages_ms().at("tune"), 0);
  const std::size_t flushes = device_.flushes;
  launch(*plan, kMany);
  EXPECT_EQ(device_.flushes, flushes);
  EXPECT_TRUE(pick(*prepare("tune=8")->bind({.n = 128}, stages_)).first.empty());
}

}  // namespace
}  // namespace spmmbench
