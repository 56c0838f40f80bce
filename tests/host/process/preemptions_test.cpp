#include "process/preemptions.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "process/processors.hpp"

namespace spmmbench {
namespace {

// On one processor for as long as this lives, with the threads and processes that it starts.
class OneProcessor {
 public:
  OneProcessor() {
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    CPU_SET(first, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneProcessor() { before_.restore(); }

 private:
  Processors before_;
};

void work_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST(Preemptions, CountAnotherProcessOnTheSameProcessor) {
  const OneProcessor one;
  const pid_t other = fork();
  if (other == 0)
    for (;;) {
    }
  const Preemptions preemptions;
  for (int i = 0; i < 50 && preemptions.rate() == 0; ++i) work_for(std::chrono::milliseconds(100));
  EXPECT_GT(preemptions.rate(), 0);
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
}

TEST(Preemptions, DoNotCountOwnThreadsThatWake) {
  const OneProcessor one;
  std::atomic<bool> end = false;
  std::thread sleeper([&end] {
    while (!end) std::this_thread::sleep_for(std::chrono::microseconds(100));
  });
  const Preemptions preemptions;
  work_for(std::chrono::milliseconds(300));
  const double rate = preemptions.rate();
  end = true;
  sleeper.join();
  // Other work on this machine may add some. The wakes are thousands a second.
  EXPECT_LT(rate * omp_get_max_threads(), 500);
}

}  // namespace
}  // namespace spmmbench
