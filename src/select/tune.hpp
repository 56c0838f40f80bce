#pragma once
// Measures the kernels with the best predictions within a budget, and remembers the winner.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "select/cache.hpp"
#include "select/rank.hpp"

namespace spmmbench {

inline constexpr int kMostTrials = 8;  // of `auto`, unless it is told another number
// A kernel may take so many times less than predicted, and so many with kWideColumns columns of B
// or more (docs/decisions/selection-trials.md).
inline constexpr double kMayTakeLess = 1.4, kWideMayTakeLess = 1.3;
inline constexpr std::int64_t kWideColumns = 64;
// Within so many calls trying a kernel has to pay where preparation does not count otherwise.
inline constexpr std::int64_t kSettledCalls = 20'000;

// The time that measuring a kernel of `us` microseconds is expected to take, without its
// preparation.
double measure_ms(double us);

struct Trial {
  std::string name;
  double us = 0, prepare_ms = 0;  // predicted
};

// With calls: whether measuring pays at all. It does if preparing and measuring `other` should cost
// less than `other` would save, should `best`, the best prediction, take somewhat longer than
// predicted.
bool worth_tuning(const Estimate& best, const Estimate& other, std::int64_t calls);

// Whether to prepare and measure `other`, when the fastest time measured is `least_us`. Without
// calls: if it could, taking as much less than predicted as kernels may with `n` columns of B, save
// what trying it costs within kSettledCalls, compared to `best`, the best prediction, or to that
// time. With calls: only if it should save more than trying it costs.
bool worth_trying(const Estimate& best, const Estimate& other, double least_us, std::int64_t calls,
                  std::int64_t n);

// Whether another than the first of `candidates` would be worth trying even if the first took
// kMayTakeMore times as long as predicted, or, where the sizes say how long, as long as that. Else
// nothing need be measured.
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
