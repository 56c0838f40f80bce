#pragma once
// Warnings for readers of the times, each with a remedy. One line for each kind, however many rows
// it concerns.

#include <string>
#include <vector>

#include "spmmbench/result.hpp"

namespace spmmbench {

inline constexpr double kSameClock = 1.02;  // clocks that differ by a greater factor are said

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
  std::string of_all(const Kind& kind) const;              // "3 of 40 rows"
  void add_doubts(std::vector<std::string>& lines) const;  // in verdicts and times
  void add_uncounted_work(std::vector<std::string>& lines) const;
  void add_far_samples(std::vector<std::string>& lines) const;  // the first, and the cold ones

  double noise_limit_, timer_floor_us_;
  int rows_ = 0;
  Kind preempted_, noisy_, throttled_, slow_start_, cold_, untested_, slow_first_, slow_prepare_,
      elsewhere_, stalls_, shared_, processors_, threads_, coarse_, not_finite_;
  std::string drift_;         // of the clock; empty where it kept its rate
  std::string why_untested_;  // the row that untested_ names
};

}  // namespace spmmbench
