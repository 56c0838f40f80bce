// Whether elements that launches write one after the other are found while they run.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "devices.hpp"
#include "gpu/backend.hpp"
#include "gpu/watcher.hpp"
#include "measure/spot_checks.hpp"
#include "measure/watched_batches.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/stage_timer.hpp"
#include "timing/sampler.hpp"
#include "verify/bound.hpp"

namespace spmmbench::test {
namespace {

constexpr int kWatchedLaunches = 100, kWatchedTries = 16;

CsrMatrix short_diagonals(std::int64_t size, std::int64_t count) {
  CsrMatrix a{size, size, {0}, {}, {}};
  for (std::int64_t row = 0; row < size; ++row) {
    for (std::int64_t i = 0; i < count; ++i) {
      a.col_idx.push_back(static_cast<std::int32_t>((row / count + i) % size));
      a.values.push_back(0.5F);
    }
    std::sort(a.col_idx.end() - count, a.col_idx.end());
    a.row_ptr.push_back(static_cast<std::int64_t>(a.values.size()));
  }
  return a;
}

// What a float is whose bytes are all the same.
double float_of_bytes(int byte) {
  float value = 0;
  std::memset(&value, byte, sizeof value);
  return value;
}

TEST(WatcherOnDevice, FindsWhatEachLaunchWroteAndNothingElse) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  constexpr std::size_t kBytes = 1024;
  const Buffer memory = device.allocate(kBytes);
  device.fill_bytes(memory.data(), 0, kBytes);
  int at = 0;
  const auto launch = [&] {
    device.fill_bytes(memory.data(), static_cast<unsigned char>(++at), kBytes);
  };
  const auto replay = cuda_record(launch, kWatchedLaunches, GraphKind::in_order, device);
  ASSERT_TRUE(replay);
  const std::vector<const void*> places = {memory.as<char>() + 4, memory.as<char>() + 1000};
  std::vector<ValueRange> ranges;
  for (int i = 1; i <= kWatchedLaunches + 2; ++i)  // the last two are never written
    for (std::size_t place = 0; place < places.size(); ++place)
      ranges.push_back({float_of_bytes(i), float_of_bytes(i)});
  ranges.insert(ranges.end(), places.size(), ValueRange{});  // asks for nothing
  replay->first(kWatchedLaunches);  // a graph is brought to the device with its first launch
  const std::unique_ptr<Watcher> watcher = make_cuda_watcher(device);
  ASSERT_TRUE(watcher);
  std::vector<bool> all(ranges.size(), false);
  for (int i = 0; i < kWatchedTries; ++i) {
    ASSERT_TRUE(watcher->begin(ElementType::f32, places));
    replay->first(kWatchedLaunches, [&] { watcher->end(); });
    const std::vector<bool> found = watcher->found(ranges);
    ASSERT_EQ(found.size(), ranges.size());
    if (i == 0) RecordProperty("missed", static_cast<int>(std::ranges::count(found, false)) - 4);
    for (std::size_t j = 0; j < found.size(); ++j) all[j] = all[j] || found[j];
  }
  for (std::size_t i = 0; i < ranges.size(); ++i)
    EXPECT_EQ(all[i], i / 2 != kWatchedLaunches && i / 2 != kWatchedLaunches + 1) << i;
}

TEST(WatcherOnDevice, SaysSoWhereItDidNotLookUntilTheEnd) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const Buffer memory = device.allocate(64);
  const std::unique_ptr<Watcher> watcher = make_cuda_watcher(device);
  ASSERT_TRUE(watcher);
  const std::vector<const void*> places = {memory.data()};
  const std::vector<ValueRange> ranges = {{0, 0}};
  ASSERT_TRUE(watcher->begin(ElementType::f32, places));
  EXPECT_TRUE(watcher->found(ranges).empty()) << "end() was not called";
  ASSERT_TRUE(watcher->begin(ElementType::f32, places));
  watcher->end();
  EXPECT_EQ(watcher->found(ranges).size(), 1U);
}

class WatchedOnDevice : public testing::TestWithParam<std::string> {};

// Launches of a microsecond or two, many of which begin before the one before has ended.
TEST_P(WatchedOnDevice, ARightKernelIsFoundInEachLaunch) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const Kernel& kernel = *Registry<Kernel>::instance().find(GetParam());
  for (const std::int64_t size : {100, 3'000})
    for (const std::int64_t n : {8, 128})
      for (const bool captured : {true, false}) {
        SCOPED_TRACE(testing::Message() << size << ", n = " << n << ", captured " << captured);
        const CsrMatrix a = short_diagonals(size, 7);
        Problem problem;
        problem.a = &a;
        problem.precision = Precision::fp16;
        problem.n = n;
        const Operands operands = make_operands(a, n, problem.precision, problem.c_type,
                                                problem.layout, nullptr, 1, device);
        const std::unique_ptr<RowOrders> orders = make_row_orders(a, {"none", {}});
        problem.orders = orders.get();
        if (!check_support(kernel, problem, device.info()).ok) continue;
        StageTimer stages;
        const auto prepared = kernel.prepare(problem.operand(), {}, device, stages);
        const auto plan = prepared->bind(problem.shape(), stages);
        SpotChecks checks(a, {}, operands,
                          error_bound(kernel.info(), problem.precision, problem.c_type),
                          problem.precision, false, device);
        WatchedBatches watched(checks, operands.c.type, [&] { return make_cuda_watcher(device); });
        int skipped = -1, at = 0;
        const auto launch = [&] {
          if (at != skipped) plan->launch(checks.b(at), operands.c, device.stream());
          ++at;
        };
        const auto batch = [&]() -> Batch {
          const int count = std::min(kWatchedLaunches, checks.most_launches());
          if (!captured)
            return {count, [&](int launches, const Batch::Meanwhile& meanwhile) {
                      at = 0;
                      return cuda_time_beside_us(launch, launches, meanwhile, device);
                    }};
          const auto replay = cuda_record(launch, count, GraphKind::in_order, device);
          return {count, [replay](int launches, const Batch::Meanwhile& meanwhile) {
                    return replay->first(launches, meanwhile);
                  }};
        };
        at = 0;
        launch();  // which loads its code
        for (skipped = -1; skipped <= 1; skipped += 2) {
          at = 0;
          const Batch all = batch();
          ASSERT_GT(all.launches, 2);
          all.first(all.launches);
          for (int i = 0; i < 4; ++i) {
            if (skipped < 0) {
              EXPECT_TRUE(watched.launch(all));
            } else {
              EXPECT_THROW(watched.launch(all), WrongLaunch);
            }
          }
        }
        checks.restore();
      }
}

INSTANTIATE_TEST_SUITE_P(kernels, WatchedOnDevice,
                         testing::Values("jagged_slices", "csr_row_split", "async_wcsr", "rsh",
                                         "cusparse_csr_default"),
                         [](const auto& info) { return info.param; });

TEST(WatcherOnDevice, ALaunchThatBeginsEarlyWaitsWhereLaunchesAreSetApart) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const CsrMatrix a = short_diagonals(100, 7);
  const Kernel& kernel = *Registry<Kernel>::instance().find("jagged_slices");
  Problem problem;
  problem.a = &a;
  problem.precision = Precision::fp16;
  problem.n = 8;
  const Operands operands = make_operands(a, problem.n, problem.precision, problem.c_type,
                                          problem.layout, nullptr, 1, device);
  StageTimer stages;
  const auto prepared = kernel.prepare(problem.operand(), {}, device, stages);
  const auto plan = prepared->bind(problem.shape(), stages);
  const auto time_of = [&](GraphKind kind) {
    const auto launch = [&, at = 0]() mutable {
      plan->launch(operands.b_view(at++ % operands.views), operands.c, device.stream());
    };
    const auto replay = cuda_record(launch, kWatchedLaunches, kind, device);
    double us = replay->first(kWatchedLaunches);
    for (int i = 0; i < kWatchedTries; ++i) us = std::min(us, replay->first(kWatchedLaunches));
    return us / kWatchedLaunches;
  };
  const double early = time_of(GraphKind::in_order), apart = time_of(GraphKind::apart);
  std::printf("early %.2f us, apart %.2f us\n", early, apart);
  if (device.info().compute_capability >= 90) {
    EXPECT_GT(apart, early);
  }
}

}  // namespace
}  // namespace spmmbench::test
