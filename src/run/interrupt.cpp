#include "run/interrupt.hpp"

#include <unistd.h>
#include <csignal>

namespace spmmbench {
namespace {

volatile std::sig_atomic_t pending = 0;
volatile std::sig_atomic_t announced = 0;

extern "C" void on_signal(int) {
  if (pending != 0) _exit(130);
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
