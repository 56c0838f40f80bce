// What threads work that are begun is told from what others do.

#include "process/new_threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/steady_seconds.hpp"

namespace spmmbench {
namespace {

// Works until the end of the block.
class Worker {
 public:
  Worker()
      : thread_([this] {
          while (!ends_) {
          }
        }) {}
  Worker(const Worker&) = delete;
  ~Worker() {
    ends_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

void wait_for(double seconds) {
  const double start = steady_seconds();
  while (steady_seconds() - start < seconds) {
  }
}

TEST(NewThreads, OnlyThoseCountThatBeginLater) {
  const Worker before;
  const NewThreads threads;
  wait_for(0.02);
  EXPECT_EQ(threads.seconds(), 0);
  {
    const Worker later;
    const double start = steady_seconds();
    while (threads.seconds() < 0.005 && steady_seconds() - start < 5) wait_for(0.001);
    const double seconds = threads.seconds();
    if (seconds == 0) GTEST_SKIP() << "this system does not count it";
    EXPECT_GE(seconds, 0.005);
  }
  EXPECT_EQ(threads.seconds(), 0) << "it has ended";
}

}  // namespace
}  // namespace spmmbench
