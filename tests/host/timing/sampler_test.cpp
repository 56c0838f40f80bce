#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "fake_device.hpp"
#include "timing/quantiles.hpp"
#include "timing/sampler.hpp"
#include "timing/stopping.hpp"

namespace spmmbench {
namespace {

TEST(Quantile, InterpolatesBetweenOrderStatistics) {
  const std::vector<double> samples = {4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(quantile(samples, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(samples, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile(samples, 0.25), 1.75);
  EXPECT_DOUBLE_EQ(quantile(samples, 1), 4);
}

TEST(Summary, KeepsSamplesInTheOrderMeasured) {
  const Timing timing = summarise({3, 1, 2}, 7);
  EXPECT_DOUBLE_EQ(timing.median_us, 2);
  EXPECT_DOUBLE_EQ(timing.min_us, 1);
  EXPECT_DOUBLE_EQ(timing.q1_us, 1.5);
  EXPECT_DOUBLE_EQ(timing.q3_us, 2.5);
  EXPECT_EQ(timing.n(), 3);
  EXPECT_EQ(timing.launches_per_sample, 7);
  EXPECT_EQ(timing.samples_us, (std::vector<double>{3, 1, 2}));
}

TEST(Noise, FallsWithTheSquareRootOfTheSampleCount) {
  std::vector<double> few, many;
  for (int i = 0; i < 16; ++i) few.push_back(100 + i % 4);
  for (int i = 0; i < 64; ++i) many.push_back(100 + i % 4);
  EXPECT_NEAR(relative_noise(few) / relative_noise(many), 2, 0.05);
  EXPECT_TRUE(std::isinf(relative_noise(std::vector<double>{1, 1, 1})));
}

TEST(Noise, IsTheStandardErrorOfTheMedianOverIt) {
  const std::vector<double> samples = {98, 99, 101, 102};  // quartiles 98.75 and 101.25
  EXPECT_DOUBLE_EQ(relative_noise(samples), 1.2533 * 2.5 / 1.349 / 100 / 2);
  EXPECT_TRUE(std::isinf(relative_noise(std::vector<double>(4, 0))));
}

TEST(SampleLimits, StopsAtLowNoiseOnlyAfterTheMinimum) {
  const SampleLimits rule{.noise = 0.01, .min_samples = 10, .max_samples = 50, .max_seconds = 9};
  std::vector<double> quiet(9, 5.0);
  EXPECT_FALSE(rule.enough(quiet, 0));
  quiet.push_back(5.0);
  EXPECT_TRUE(rule.enough(quiet, 0));
}

TEST(SampleLimits, StopsAtItsCaps) {
  const SampleLimits rule{.noise = 0.001, .min_samples = 10, .max_samples = 20, .max_seconds = 2};
  std::vector<double> noisy;
  for (int i = 0; i < 19; ++i) noisy.push_back(i % 2 == 0 ? 1 : 100);
  EXPECT_FALSE(rule.enough(noisy, 1));
  EXPECT_TRUE(rule.enough(noisy, 2));
  noisy.push_back(1);
  EXPECT_TRUE(rule.enough(noisy, 0));
  EXPECT_FALSE(rule.enough({}, 100)) << "never without a sample";
  const SampleLimits none{.noise = 0, .min_samples = 4, .max_samples = 20, .max_seconds = 2};
  EXPECT_TRUE(none.enough(std::vector<double>(4, 5.0), 0)) << "samples without noise";
}

class Sampler : public ::testing::Test {
 protected:
  FakeDevice device_;
  Clock clock_ = [this] { return device_.now_s; };
  SampleLimits rule_{.noise = 0.01, .min_samples = 10, .max_samples = 30, .max_seconds = 1};
};

TEST_F(Sampler, HotBatchesShortLaunches) {
  device_.launch_us = {10};
  const Timing timing = sample_hot(
      device_, [](int) {}, rule_, {.sample_us = 1000}, {}, clock_);
  EXPECT_EQ(timing.launches_per_sample, 100);
  EXPECT_DOUBLE_EQ(timing.median_us, 10);
  EXPECT_EQ(timing.n(), 10);
  EXPECT_EQ(device_.flushes, 0U);
}

TEST_F(Sampler, WarmUpIsNotSampled) {
  device_.launch_us = {5000, 5000, 5000, 5000, 1000};
  const Timing timing = sample_hot(
      device_, [](int) {}, rule_, {.warmup_us = 20000}, {}, clock_);
  EXPECT_EQ(timing.samples_us.front(), 1000);
}

TEST_F(Sampler, ASlowFirstLaunchDoesNotSizeTheBatch) {
  device_.launch_us = {10'000, 300};
  const Timing timing = sample_hot(
      device_, [](int) {}, rule_, {}, {}, clock_);
  EXPECT_EQ(timing.launches_per_sample, 2);
}

TEST_F(Sampler, AHostThatIsHeldUpDoesNotShortenSamples) {
  device_.launch_us = {5000, 400, 4000, 10};
  const Timing timing = sample_hot(
      device_, [](int) {}, rule_, {}, {}, clock_);
  EXPECT_EQ(timing.launches_per_sample, 50) << "not one, of (4000 + 7 x 10) / 8 us";
}

TEST_F(Sampler, TheFirstBatchIsNotSampled) {
  device_.launch_us = {5000, 5000, 3000, 1000};
  std::size_t before = 0;
  const AroundSample around = {.begin = [&] { before = device_.launches; }};
  const Timing timing = sample_hot(
      device_, [](int) {}, rule_, {}, around, clock_);
  EXPECT_EQ(timing.samples_us.front(), 1000);
  EXPECT_EQ(before, 2U) << "what evicts the cache comes before that batch";
}

TEST_F(Sampler, WarmUpOfShortLaunchesHasAnEnd) {
  device_.launch_us = {1};
  const Timing timing = sample_hot(
      device_, [](int) {}, rule_, {}, {}, clock_);
  EXPECT_EQ(timing.launches_per_sample, 256);
  EXPECT_EQ(device_.launches, 2U + 256 + 256 * (1 + 10));
}

TEST_F(Sampler, TheOverheadOfASingleLaunchDoesNotSizeTheBatch) {
  class WithOverhead final : public FakeDevice {
    double time_us(const std::function<void()>& launch, int count) override {
      return 100 + FakeDevice::time_us(launch, count);
    }
  } device;
  const Timing timing = sample_hot(
      device, [](int) {}, rule_, {}, {}, [&] { return device.now_s; });
  EXPECT_EQ(timing.launches_per_sample, 23) << "of (100 + 8 x 10) / 8 us, not of 110";
}

TEST_F(Sampler, LaunchesOnOtherStreamsAreTimedBetweenIdleDevices) {
  class Waiting final : public FakeDevice {
   public:
    void wait_idle() override { ++waits; }
    int waits = 0;
  } device;
  bool idle_before = true;
  int launches = 0;
  const auto launch = [&](int) {
    idle_before &= device.waits == 2 * launches + 1;
    ++launches;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  const Timing timing = sample_cold(device, launch, rule_, {.by_host_clock = true}, {},
                                    [&] { return launches < 3 ? 0.0 : 10.0; });
  EXPECT_TRUE(idle_before);
  EXPECT_EQ(device.waits, 2 * launches);
  EXPECT_GE(timing.min_us, 2000);
  EXPECT_LT(timing.min_us, 2e6);
  int hot = 0;
  sample_hot(
      device, [&](int) { ++hot; }, rule_, {.by_host_clock = true}, {}, [] { return 0.0; });
  EXPECT_EQ(device.launches, 0U) << "none is timed by the device's events";
  EXPECT_GT(hot, 0);
}

TEST_F(Sampler, LongLaunchesStopAtTheTimeCap) {
  device_.launch_us = {300'000};
  const Timing timing = sample_hot(
      device_, [](int) {}, rule_, {}, {}, clock_);
  EXPECT_EQ(timing.launches_per_sample, 1);
  EXPECT_EQ(timing.n(), 4);
}

TEST_F(Sampler, ColdFlushesBeforeEachIsolatedLaunch) {
  std::size_t samples = 0;
  const AroundSample around = {.flushed = [&] {
    EXPECT_EQ(device_.launches, samples);
    EXPECT_EQ(device_.flushes, ++samples);
  }};
  const Timing timing = sample_cold(
      device_, [](int) {}, rule_, {}, around, clock_);
  EXPECT_EQ(timing.launches_per_sample, 1);
  EXPECT_EQ(samples, static_cast<std::size_t>(timing.n()));
  EXPECT_EQ(device_.flushes, static_cast<std::size_t>(timing.n()));
  for (const bool cold : device_.cold) EXPECT_TRUE(cold);
}

TEST_F(Sampler, LaunchesOfABatchAreCountedFromItsBeginning) {
  std::vector<int> seen;
  int ended = 0;
  const auto launch = [&](int at) { seen.push_back(at); };
  const Timing timing = sample_hot(device_, launch, rule_, {.sample_us = 30},
                                   {.before =
                                        [&](int count) {
                                          EXPECT_EQ(count, 3);
                                          seen.clear();
                                        },
                                    .after =
                                        [&](const Batch& batch) {
                                          EXPECT_EQ(seen, (std::vector<int>{0, 1, 2}));
                                          EXPECT_EQ(batch.launches, 3);
                                        },
                                    .end =
                                        [&](const Batch& batch) {
                                          seen.clear();
                                          batch.first(2);
                                          EXPECT_EQ(seen, (std::vector<int>{0, 1}));
                                          ++ended;
                                        }},
                                   clock_);
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(timing.launches_per_sample, 3);
  seen.clear();
  launch_batch(device_, launch, 2, {});
  EXPECT_EQ(seen, (std::vector<int>{0, 1}));
}

TEST_F(Sampler, WhatComesBeforeASampleMayEndTheSampling) {
  int polls = 0;
  const auto poll = [&](int) {
    if (++polls == 3) throw std::runtime_error("stop");
  };
  EXPECT_THROW(sample_hot(
                   device_, [](int) {}, rule_, {}, {.before = poll}, clock_),
               std::runtime_error);
  polls = 0;
  EXPECT_THROW(sample_cold(
                   device_, [](int) {}, rule_, {}, {.before = poll}, clock_),
               std::runtime_error);
}

}  // namespace
}  // namespace spmmbench
