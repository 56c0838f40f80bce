#include "process/interrupt.hpp"

#include <time.h>
#include <unistd.h>
#include <csignal>

namespace spmmbench {
namespace {

volatile std::sig_atomic_t pending = 0;
volatile std::sig_atomic_t announced = 0;

// Time of the first signal. One request can arrive twice: timeout(1) signals the process and its
// group.
timespec first = {};
constexpr long kSameRequestMs = 500;

long ms_since_first() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (now.tv_sec - first.tv_sec) * 1000 + (now.tv_nsec - first.tv_nsec) / 1000000;
}

extern "C" void on_signal(int) {
  if (pending != 0) {
    if (ms_since_first() < kSameRequestMs) return;
    _exit(130);
  }
  clock_gettime(CLOCK_MONOTONIC, &first);
  pending = 1;
  if (announced == 0) return;
  constexpr char kMessage[] = "\nspmmbench: ending after this sample; once more to end at once\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
}

}  // namespace

void install_interrupt_handler(bool announce) {
  announced = announce ? 1 : 0;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void poll_interrupt() {
  if (pending != 0) throw Interrupted();
}

}  // namespace spmmbench
