#pragma once
// One case in a child process of its own, so that an illegal address, a hang or exhausted memory
// costs one row.

#include <optional>
#include <string>
#include <vector>

#include "spmmbench/result.hpp"

namespace spmmbench {

// Runs this executable with `arguments` plus `--json TEMPORARY --quiet`, kills it after timeout_s,
// and returns the rows it wrote. `reason` says why there are none: a timeout, a signal, or what the
// child printed last.
struct ChildOutcome {
  std::vector<ResultRow> rows;
  bool timed_out = false;
  std::string reason;
};
ChildOutcome run_isolated(const std::vector<std::string>& arguments, double timeout_s);

}  // namespace spmmbench
