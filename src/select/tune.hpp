#pragma once
// Measures the kernels with the best predictions within a budget, and remembers the winner.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "select/cache.hpp"
#include "select/predict.hpp"

namespace spmmbench {

struct Trial {
  std::string name;
  double us = 0, prepare_ms = 0;  // predicted
};

// The time by which candidates are ranked. `calls` > 0 counts preparation, spread over so many
// calls.
double cost_us(double us, double prepare_ms, std::int64_t calls);

// With calls: whether measuring is worth it where `best` is the best prediction. It is where
// preparing and measuring `other` as well is expected to cost less than `other` would save if
// `best` took somewhat longer than predicted.
bool worth_tuning(const Prediction& best, const Prediction& other, std::int64_t calls);

// Whether to prepare and measure `other` where the fastest so far takes `least_us`. Without calls:
// where it is predicted to take little longer than `best`, the best prediction, or than the
// fastest, which may take far longer than predicted. With calls: where that is expected to cost
// less than it saves.
bool worth_trying(const Prediction& best, const Prediction& other, double least_us,
                  std::int64_t calls);

struct Tuned {
  std::size_t picked = 0;
  std::vector<std::pair<std::size_t, double>> measured_us;  // in the order of the trials
  bool remembered = false;  // it came from the cache; nothing was measured
};

// `cost_us(i)` prepares and measures the i-th trial; it returns nothing where the trial is not
// worth that. The first is always measured, and where it fails the next one. Another is measured
// where the time spent so far and its own preparation stay within `budget_ms`. A trial that throws
// Unsupported or OutOfMemory is left out; where all do, the first of these is thrown. The winner is
// kept in the cache, under `key` and the names of the trials, unless memory lacked: another time
// there may be enough.
Tuned tune(const std::vector<Trial>& trials,
           const std::function<std::optional<double>(std::size_t)>& cost_us, double budget_ms,
           CacheEntry key);

}  // namespace spmmbench
