#include "run/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/steady_seconds.hpp"
#include "io/output.hpp"
#include "report/terminal.hpp"

namespace spmmbench {

constexpr std::chrono::milliseconds kBetweenDrawings{500};

Progress::Progress(std::size_t total, std::size_t pending, bool quiet)
    : total_(total),
      pending_(pending),
      quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) == 1),
      begin_s_(steady_seconds()) {
  if (!quiet_ && terminal_) ticker_ = std::thread([this] { tick(); });
}

Progress::~Progress() {
  if (!ticker_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_one();
  ticker_.join();
}

void Progress::tick() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kBetweenDrawings, [this] { return end_; })) draw();
}

std::string Progress::counts() const {
  const double elapsed_s = steady_seconds() - begin_s_;
  std::string left = "?";
  if (timed_ > 0) {
    const double each_s = elapsed_s / static_cast<double>(timed_);
    left = format_duration(each_s * static_cast<double>(pending_ - std::min(pending_, timed_)));
  }
  return fmt::format("{}, {} left", format_duration(elapsed_s), left);
}

void Progress::draw() {
  if (what_.empty()) return;
  const std::string line =
      fmt::format("[{}/{}] {}  {} {}", std::min(finished_ + 1, total_), total_, counts(), what_,
                  format_duration(steady_seconds() - started_s_));
  // A line that fills the last column makes some terminals go on to the next.
  write_status("\r\033[K" + clip(line, terminal_width(STDERR_FILENO) - 1));
}

void Progress::start(const std::string& what) {
  if (quiet_ || !terminal_) return;
  const std::lock_guard lock(mutex_);
  what_ = what;
  started_s_ = steady_seconds();
  draw();
}

void Progress::skip(std::size_t cases) {
  const std::lock_guard lock(mutex_);
  finished_ += cases;
}

void Progress::drop(std::size_t cases) {
  const std::lock_guard lock(mutex_);
  finished_ += cases;
  pending_ -= std::min(pending_, cases);
}

void Progress::done() {
  const std::lock_guard lock(mutex_);
  ++finished_;
  ++timed_;
}

void Progress::matrix_done(const std::string& name) {
  if (quiet_ || terminal_) return;
  say("[{}/{}] {}  {}\n", finished_, total_, counts(), name);
}

void Progress::clear() {
  const std::lock_guard lock(mutex_);
  if (!what_.empty()) write_status("\r\033[K");
  what_.clear();
}

std::string format_duration(double seconds) {
  const long long whole = std::llround(seconds);
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
}

}  // namespace spmmbench
