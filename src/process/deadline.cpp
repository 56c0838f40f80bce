#include "process/deadline.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstring>

#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

// What a handler of a signal may read.
std::array<char, 1024> last_line;
volatile std::sig_atomic_t last_line_bytes = 0;

extern "C" void on_deadline(int) {
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, last_line.data(), static_cast<std::size_t>(last_line_bytes));
  _exit(static_cast<int>(ExitCode::some_failed));
}

}  // namespace

void set_deadline(double seconds, const std::string& line) {
  cancel_deadline();
  const std::string text = fmt::format("spmmbench: {}\n", line);
  last_line_bytes = static_cast<int>(std::min(text.size(), last_line.size()));
  std::memcpy(last_line.data(), text.data(), static_cast<std::size_t>(last_line_bytes));
  struct sigaction action = {};
  action.sa_handler = on_deadline;
  sigaction(SIGALRM, &action, nullptr);
  alarm(static_cast<unsigned>(std::clamp(std::ceil(seconds), 1.0, static_cast<double>(INT_MAX))));
}

void cancel_deadline() { alarm(0); }

}  // namespace spmmbench
