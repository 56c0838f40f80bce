// Waiting for a processor is told from work and from sleep.

#include "process/waited_seconds.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace spmmbench {
namespace {

using std::chrono::milliseconds;

TEST(OwnSeconds, SleepingCounts) {
  // The clock of waits runs at its own rate: at most 500 ppm off, which NTP corrects in the other.
  constexpr double kSlept = 0.03 * (1 - 500e-6);
  constexpr int kTries = 5;  // this thread may wait between the readings of the two clocks
  double most = 0;
  for (int i = 0; i < kTries && most < kSlept; ++i) {
    const OwnSeconds since(Threads::caller);
    std::this_thread::sleep_for(milliseconds(30));
    most = std::max(most, since.passed());
  }
  EXPECT_GE(most, kSlept);
}

TEST(OwnSeconds, WaitingForAProcessorDoesNotCount) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int processor = 0;
  while (!CPU_ISSET(processor, &before)) ++processor;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  std::atomic<bool> done = false;
  std::thread other([&done] {  // has the same processor
    while (!done) {
    }
  });
  const OwnSeconds caller(Threads::caller), all(Threads::all);
  const double start = steady_seconds();
  while (steady_seconds() - start < 0.1) {
  }
  const double own = caller.passed(), waited = caller.waited(), waited_by_all = all.waited();
  done = true;
  other.join();
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  if (waited == 0) GTEST_SKIP() << "this system does not count it";
  EXPECT_LT(own, 0.08);
  EXPECT_GT(waited, 0.02);
  EXPECT_GT(waited_by_all, waited) << "the other one waits in turn";
}

}  // namespace
}  // namespace spmmbench
