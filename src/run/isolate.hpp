#pragma once
// One case in a child process of its own, so that an illegal address, a hang or exhausted memory
// costs one row.

#include <optional>
#include <string>
#include <vector>

#include "spmmbench/result.hpp"

namespace spmmbench {

struct ChildOutcome {
  std::optional<ResultRow> row;
  bool timed_out = false;
  std::string reason;  // why there is no row: a timeout, a signal, or what the child printed last
};

// Runs this program with `arguments`, which make it print one row as a line of JSON, and kills it
// after timeout_s. Throws Interrupted.
ChildOutcome run_isolated(const std::vector<std::string>& arguments, double timeout_s);

}  // namespace spmmbench
