#include <fmt/format.h>
#include <gtest/gtest.h>

#include "report/warnings.hpp"
#include "result_rows.hpp"

namespace spmmbench {
namespace {

TEST(Warnings, CompareTheFirstSampleAndColdTimesWithHotOnes) {
  const auto lines_of = [](double first_us, double cold_us, double floor_us) {
    ResultRow row = row_of("rsh", "fp16", 100);
    row.hot = summarise({first_us, 100, 100, 100, 100, 100}, 1);
    row.cold = summarise({cold_us}, 1);
    Warnings warnings(0.01, floor_us);
    warnings.add(row);
    return warnings.lines();
  };
  EXPECT_TRUE(lines_of(190, 490, 0).empty());
  EXPECT_EQ(lines_of(210, 490, 0).size(), 1U);
  EXPECT_EQ(lines_of(190, 510, 0).size(), 1U);
  EXPECT_TRUE(lines_of(190, 510, 20).empty()) << "without the time of two events";
}

TEST(Warnings, CountTheRowsAndNameTheWorst) {
  Warnings warnings(0.01, 0);
  for (const double us : {700, 900, 800}) {
    ResultRow row = row_of(fmt::format("k{}", us), "fp16", 100);
    row.hot = summarise(std::vector<double>(6, 100), 1);
    row.cold = summarise({us}, 1);
    warnings.add(row);
    row.status = Status::wrong;
    warnings.add(row);
  }
  ASSERT_EQ(warnings.lines().size(), 1U);
  EXPECT_TRUE(warnings.lines()[0].starts_with("3 of 3 rows took 5 times")) << warnings.lines()[0];
  EXPECT_NE(warnings.lines()[0].find("(worst 9.0: k900 on"), std::string::npos);
}

TEST(Warnings, CountTheRowsWhoseAIsNotFinite) {
  Warnings warnings(0.01, 0);
  for (const double count : {0, 2, 1}) {
    ResultRow row = row_of(fmt::format("k{}", count), "fp16", 100);
    row.hot = row.cold = summarise(std::vector<double>(6, 100), 1);
    if (count > 0) row.metrics["a_not_finite"] = count;
    warnings.add(row);
  }
  ASSERT_EQ(warnings.lines().size(), 1U);
  EXPECT_TRUE(
      warnings.lines()[0].starts_with("A of 2 of 3 rows has values that are NaN or infinite "
                                      "(most 2: k2 on"))
      << warnings.lines()[0];
}

TEST(Warnings, SayThatOtherWorkTookTheProcessorsAndDoNotBlameTheCache) {
  Warnings warnings(0.01, 0);
  for (const double rate : {3, 75, 40}) {
    ResultRow row = row_of(fmt::format("k{}", rate), "fp16", 100);
    row.hot = summarise(std::vector<double>(6, 100), 1);
    row.cold = summarise({900}, 1);
    row.metrics["preemptions_per_s"] = rate;
    warnings.add(row);
  }
  const std::vector<std::string> lines = warnings.lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(lines[0].starts_with("other work took the processors in 2 of 3 rows (worst 75 times"))
      << lines[0];
  EXPECT_TRUE(lines[1].starts_with("1 of 3 rows took 5 times")) << lines[1];
  EXPECT_NE(lines[1].find("k3 on"), std::string::npos) << lines[1];
}

TEST(Warnings, SayThatTheClockDrifted) {
  const auto lines_of = [](std::optional<unsigned> before, std::optional<unsigned> after) {
    Warnings warnings(0.01, 0);
    ClockState first, last;
    first.sm_mhz = before;
    last.sm_mhz = after;
    warnings.add_clocks(first, last);
    return warnings.lines();
  };
  EXPECT_TRUE(lines_of(1980, 1965).empty());
  EXPECT_TRUE(lines_of(1980, {}).empty()) << "NVML does not say";
  ASSERT_EQ(lines_of(1980, 1755).size(), 1U);
  EXPECT_TRUE(lines_of(1980, 1755)[0].starts_with("the SM clock went from 1980 to 1755 MHz"));
  EXPECT_EQ(lines_of(1755, 1980).size(), 1U);
}

TEST(Warnings, SayThatTheTimerIsCoarse) {
  const auto lines_of = [](double step_us) {
    ResultRow row = row_of("k", "fp16", 100);
    std::vector<double> samples(20, 100);
    for (std::size_t i = 0; i < samples.size(); i += 3) samples[i] += step_us;
    row.hot = summarise(samples, 1);
    row.cold = summarise({100}, 1);
    Warnings warnings(0.01, 0);
    warnings.add(row);
    return warnings.lines();
  };
  EXPECT_TRUE(lines_of(0.5).empty());
  ASSERT_FALSE(lines_of(2).empty());
  EXPECT_NE(lines_of(2).back().find("differ by less than 2.0 % in 1 of 1 row"), std::string::npos);
}

TEST(Warnings, CountTheRowsWithoutAnExactTest) {
  Warnings warnings(0.01, 0);
  for (const std::int64_t longest : {0, 7, 900, 800}) {
    ResultRow row = row_of(fmt::format("k{}", longest), "fp16", 100);
    row.cold = row.hot = summarise(std::vector<double>(6, 100), 1);
    row.matrix.max_row = longest;
    row.exact = ExactTest{.passed = longest == 0,
                          .not_made = longest == 0 ? "" : fmt::format("no memory for {}", longest)};
    warnings.add(row);
  }
  ASSERT_EQ(warnings.lines().size(), 1U);
  EXPECT_TRUE(warnings.lines()[0].starts_with("3 of 4 rows had no exact test"));
  EXPECT_NE(warnings.lines()[0].find("900 nonzeros, k900 on"), std::string::npos);
  EXPECT_NE(warnings.lines()[0].find(": no memory for 900)"), std::string::npos);
}

TEST(Warnings, NameAFirstLaunchThatMustHavePrepared) {
  const auto lines_of = [](double first_us, double preemptions) {
    ResultRow row = row_of("rsh", "fp16", 100);
    row.cold = row.hot = summarise(std::vector<double>(6, 5000), 1);
    row.metrics = {{"first_launch_us", first_us}, {"preemptions_per_s", preemptions}};
    Warnings warnings(0.01, 0);
    warnings.add(row);
    return warnings.lines();
  };
  EXPECT_TRUE(lines_of(29'000, 0).empty());
  ASSERT_EQ(lines_of(231'000, 0).size(), 1U);
  EXPECT_TRUE(lines_of(231'000, 0)[0].starts_with(
      "in 1 of 1 row the first launch of a plan took 20 ms more than two cold ones (worst 231 ms"))
      << lines_of(231'000, 0)[0];
  ASSERT_EQ(lines_of(231'000, 75).size(), 1U);
  EXPECT_TRUE(lines_of(231'000, 75)[0].starts_with("other work took the processors"));
}

TEST(Warnings, AFirstPreparationThatTookMuchLongerIsCounted) {
  ResultRow row = row_of("rsh", "fp16", 100);
  row.cold = row.hot = summarise(std::vector<double>(6, 5000), 1);
  row.metrics = {{"first_prepare_ms", 41}};
  Warnings warnings(0.01, 0);
  warnings.add(row);
  ASSERT_EQ(warnings.lines().size(), 1U);
  EXPECT_TRUE(warnings.lines()[0].starts_with(
      "in 1 of 1 row the first of several preparations took 20 ms more than the one that counts "
      "(worst 41 ms"))
      << warnings.lines()[0];
}

TEST(Warnings, WorkWhereNoStageCountsItIsCountedUnlessOthersUseTheGpu) {
  ResultRow row = row_of("rsh", "fp16", 100);
  row.cold = row.hot = summarise(std::vector<double>(6, 5000), 1);
  row.metrics = {{"elsewhere_ms", 33}, {"gpu_processes", 1}};
  Warnings warnings(0.01, 0);
  warnings.add(row);
  EXPECT_TRUE(warnings.lines().empty());
  row.metrics.erase("gpu_processes");
  warnings.add(row);
  ASSERT_EQ(warnings.lines().size(), 1U);
  EXPECT_TRUE(warnings.lines()[0].starts_with(
      "in 1 of 2 rows a kernel worked for more than 20 ms where no stage counts it"))
      << warnings.lines()[0];
}

TEST(Warnings, ALaterLaunchThatPreparesAndTooManyThreadsAreCounted) {
  const auto lines_of = [](const char* metric, double value) {
    ResultRow row = row_of("rsh", "fp16", 100);
    row.cold = row.hot = summarise(std::vector<double>(6, 5000), 1);
    row.metrics = {{metric, value}};
    Warnings warnings(0.01, 0);
    warnings.add(row);
    return warnings.lines();
  };
  ASSERT_EQ(lines_of("launch_stall_ms", 62).size(), 1U);
  EXPECT_TRUE(lines_of("launch_stall_ms", 62)[0].starts_with(
      "in 1 of 1 row a launch after the first took 20 ms more than the others (worst 62 ms"));
  ResultRow shared = row_of("rsh", "fp16", 100);
  shared.metrics = {{"launch_stall_ms", 62}, {"gpu_processes", 3}};
  shared.cold = shared.hot = summarise(std::vector<double>(6, 5000), 1);
  Warnings warnings(0.01, 0);
  warnings.add(shared);
  ASSERT_EQ(warnings.lines().size(), 1U) << "nobody is said to prepare";
  EXPECT_TRUE(warnings.lines()[0].starts_with(
      "other processes used the GPU in 1 of 1 row, and a launch took up to 62 ms"));
  ASSERT_EQ(lines_of("thread_ms", 31).size(), 1U);
  EXPECT_TRUE(
      lines_of("thread_ms", 31)[0].starts_with("in 1 of 1 row threads that the kernel has begun "
                                               "worked while it was timed on a GPU (worst 31"));
  ASSERT_EQ(lines_of("processors_used", 3.9).size(), 1U);
  EXPECT_TRUE(lines_of("processors_used", 3.9)[0].starts_with(
      "1 of 1 row used more processors than OpenMP has threads (worst 3.9"));
}

TEST(Warnings, NameTheWorstNoiseOrSayThatSamplesAreTooFew) {
  const auto warning_of = [](std::vector<double> samples_us) {
    ResultRow row = row_of("rsh", "fp16", 100);
    row.hot->samples_us = std::move(samples_us);
    row.cold = row.hot;
    Warnings warnings(0.01, 0);
    warnings.add(row);
    return warnings.lines();
  };
  EXPECT_TRUE(warning_of({100, 100, 100, 100, 101}).empty());
  const auto noisy = warning_of({100, 150, 100, 150, 200}), few = warning_of({100, 101});
  ASSERT_EQ(noisy.size(), 1U);
  EXPECT_NE(noisy[0].find("(worst "), std::string::npos) << noisy[0];
  ASSERT_EQ(few.size(), 1U);
  EXPECT_NE(few[0].find("(too few samples to tell: rsh on"), std::string::npos) << few[0];
}

}  // namespace
}  // namespace spmmbench
