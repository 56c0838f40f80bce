#pragma once
// Measures the kernels with the best predictions within a budget, and remembers the winner.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "select/cache.hpp"
#include "select/rank.hpp"

namespace spmmbench {

inline constexpr int kMostTrials = 8;  // of `auto`, unless it is told another number
// How many times too long a prediction may be: in general, with kWideColumns columns of B or more,
// and of these where the trial takes more than kCostlyTrial products of the best prediction
// (docs/decisions/selection-trials.md).
inline constexpr double kMayTakeLess = 1.4, kWideMayTakeLess = 1.3, kCostlyMayTakeLess = 1.25;
inline constexpr std::int64_t kWideColumns = 64;
inline constexpr double kCostlyTrial = 50;  // products
// If no number of calls is given, trying a kernel has to pay within this many.
inline constexpr std::int64_t kSettledCalls = 20'000;

// What a preparation takes beyond its estimate, waiting for the device among it
// (docs/decisions/selection-trials.md).
inline constexpr double kStepUs = 10;

// The time that measuring a kernel of `us` microseconds is expected to take, without its
// preparation.
double measure_ms(double us);

struct Trial {
  std::string name;
  double us = 0, prepare_ms = 0;  // predicted
};

// With calls: whether measuring pays at all. Suppose that `best`, the best prediction, takes
// somewhat longer than predicted. Measuring pays if `other` then saves more than preparing and
// measuring it costs. It also pays if it costs a small part of the calls and `other` may win.
bool worth_tuning(const Estimate& best, const Estimate& other, std::int64_t calls, std::int64_t n);

// Whether to prepare and measure `other`. It competes with `best`, the best prediction, and with
// `least_us`, the fastest time measured. "Could": its prediction is as much too long as that of a
// kernel may be with `n` columns of B.
//   Without calls: if it could save what trying it costs within kSettledCalls.
//   With calls: if it should save more than trying it costs. It is enough that it could, if trying
//   it costs a small part of the time of the calls.
bool worth_trying(const Estimate& best, const Estimate& other, double least_us, std::int64_t calls,
                  std::int64_t n);

// Whether a kernel need not be tried in the order that A has: it should take far longer than in
// another one, which is known and in which a trial took `us`.
bool takes_far_longer(const Estimate& natural, const Estimate& in_order, double us);

// What trials tell of estimates: where a kernel took less than estimated, its estimates with other
// options are too long as well. The reverse holds less often
// (docs/decisions/selection-trials.md).
class EstimatesByTrials {
 public:
  void took(const Candidate& tried, double us);
  Estimate of(const Candidate& candidate) const;

 private:
  std::map<std::string_view, double> shares_;  // of its estimate that a kernel took, at most 1
};

// Whether anything need be measured: whether another than the first of `candidates` would be worth
// trying even if the first took kMayTakeMore times as long as predicted. If the sizes of A alone
// decide its time, the prediction itself counts.
inline constexpr double kMayTakeMore = 1.25;  // docs/decisions/selection-trials.md
bool any_may_win(const std::vector<Candidate>& candidates, std::int64_t calls, std::int64_t n);

struct Tuned {
  std::size_t picked = 0;
  std::vector<std::pair<std::size_t, double>> measured_us;  // in the order of the trials
  bool remembered = false;  // it came from the cache; nothing was measured
};

// `cost_us(i)` prepares and measures the i-th trial, or returns nothing if that is not worth it.
// The first trial is always measured, or the next one if it fails. Others are measured while the
// time spent and their own preparation stay within `budget_ms`. A trial that throws Unsupported or
// OutOfMemory is left out; if all do, the first of these errors is thrown. The winner is kept in
// the cache, under `key`, the names of the trials and the program's version and revision, unless
// memory was short.
Tuned tune(const std::vector<Trial>& trials,
           const std::function<std::optional<double>(std::size_t)>& cost_us, double budget_ms,
           CacheEntry key);

}  // namespace spmmbench
