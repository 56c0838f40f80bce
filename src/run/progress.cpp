#include "run/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "stats/sampler.hpp"

namespace spmmbench {

Progress::Progress(std::size_t total, std::size_t pending, bool quiet)
    : total_(total),
      pending_(pending),
      quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) == 1),
      begin_s_(steady_seconds()) {}

void Progress::start(const std::string& what) {
  if (quiet_) return;
  std::string left = "?";
  if (timed_ > 0) {
    const double each_s = (steady_seconds() - begin_s_) / static_cast<double>(timed_);
    left = format_duration(each_s * static_cast<double>(pending_ - std::min(pending_, timed_)));
  }
  const std::string line =
      fmt::format("[{}/{}] {} left  {}", finished_ + 1, total_, left, what).substr(0, 99);
  if (terminal_) fmt::print(stderr, "\r\033[K{}", line);
  else fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
}

void Progress::skip(std::size_t cases) { finished_ += cases; }

void Progress::drop(std::size_t cases) {
  finished_ += cases;
  pending_ -= std::min(pending_, cases);
}

void Progress::done() {
  ++finished_;
  ++timed_;
}

void Progress::clear() {
  if (!quiet_ && terminal_) fmt::print(stderr, "\r\033[K");
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<long long>(seconds + 0.5);
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
}

}  // namespace spmmbench
