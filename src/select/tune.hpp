#pragma once
// Measures the kernels with the best predictions within a budget, and remembers the winner.

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "select/cache.hpp"

namespace spmmbench {

struct Trial {
  std::string name;
  double prepare_ms = 0;  // predicted
};

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
