#pragma once
// Warnings for readers of the times, each with a remedy. One line for each kind, however many rows
// it concerns.

#include <cstdint>
#include <string>
#include <vector>

#include "spmmbench/result.hpp"

namespace spmmbench {

// NVML's reasons for lower clocks that make times longer than the device's own: power cap, hardware
// slowdown, software and hardware thermal slowdown, power brake. Idle and application clocks are
// not among them.
inline constexpr std::uint64_t kSlowingReasons = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;

class Warnings {
 public:
  Warnings(double noise_limit, double timer_floor_us)
      : noise_limit_(noise_limit), timer_floor_us_(timer_floor_us) {}

  void add(const ResultRow& row);  // with its samples; only ok rows count
  void add_clocks(const ClockState& before, const ClockState& after);  // of the whole run
  std::vector<std::string> lines() const;

 private:
  struct Kind {
    int rows = 0;
    double worst = 0;
    std::string where;
    bool note(double value, const ResultRow& row);  // whether this row is the worst
  };
  double noise_limit_, timer_floor_us_;
  int rows_ = 0;
  Kind preempted_, noisy_, throttled_, slow_start_, cold_, untested_, slow_first_, coarse_;
  std::string drift_;         // of the clock; empty where it kept its rate
  std::string why_untested_;  // the row that untested_ names
};

}  // namespace spmmbench
