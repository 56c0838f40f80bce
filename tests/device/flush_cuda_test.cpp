// A flush of the L2 cache evicts it: what was read before must come from memory again. Other
// processes would evict it as well, so shards skip these tests and scripts/device_tests.sh runs
// them alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <vector>

#include "chase.hpp"
#include "devices.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench::test {
namespace {

constexpr std::uint32_t kLines = 8192;  // 1 MiB: a small part of the L2 cache
constexpr int kRepetitions = 9;

// How much longer the chase takes after `between` than right after itself: medians.
double slowdown(Device& device, const std::function<void()>& between) {
  std::vector<std::uint32_t> order(kLines - 1);  // a cycle through all lines, in random order
  std::iota(order.begin(), order.end(), 1U);
  std::sort(order.begin(), order.end(), [](std::uint32_t a, std::uint32_t b) {
    return hash_position(1, a, 0) < hash_position(1, b, 0);
  });
  std::vector<std::uint32_t> next(kLines * kLineWords, 0);
  std::uint32_t line = 0;
  for (const std::uint32_t following : order) {
    next[line * kLineWords] = following;
    line = following;
  }
  const Buffer lines = device.upload(next);
  const Buffer end = device.allocate(sizeof(std::uint32_t));
  const auto once = [&] {
    return device.time_us(
        [&] { chase(lines.as<std::uint32_t>(), kLines, end.as<std::uint32_t>(), device.stream()); },
        1);
  };
  std::vector<double> warm, after;
  once();
  for (int i = 0; i < kRepetitions; ++i) {
    warm.push_back(once());
    between();
    after.push_back(once());
  }
  std::nth_element(warm.begin(), warm.begin() + kRepetitions / 2, warm.end());
  std::nth_element(after.begin(), after.begin() + kRepetitions / 2, after.end());
  return after[kRepetitions / 2] / warm[kRepetitions / 2];
}

bool is_shard() { return std::getenv("GTEST_TOTAL_SHARDS") != nullptr; }

TEST(Flush, WhatWasReadBeforeItComesFromMemoryAgain) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  if (is_shard()) GTEST_SKIP() << "other shards use the same cache";
  const double flushed = slowdown(device, [&] { device.flush_cache(); });
  RecordProperty("slowdown", std::to_string(flushed));
  EXPECT_GT(flushed, 1.5);
}

TEST(Flush, OneThatDoesNothingWouldBeSeen) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  if (is_shard()) GTEST_SKIP() << "other shards use the same cache";
  EXPECT_LT(slowdown(device, [] {}), 1.2);
}

}  // namespace
}  // namespace spmmbench::test
