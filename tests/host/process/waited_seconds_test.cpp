// Waiting for a processor is told from work and from sleep.

#include "process/waited_seconds.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace spmmbench {
namespace {

using std::chrono::milliseconds;

TEST(OwnSeconds, SleepingCounts) {
  const OwnSeconds since(Threads::caller);
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_GT(since.passed() + since.waited(), 0.03);
  EXPECT_GT(since.passed(), since.waited()) << "nobody else had the processor for so long";
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
