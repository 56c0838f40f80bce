#pragma once
// One case in a child process of its own, so that an illegal address, a hang or exhausted memory
// loses only one row.

#include <optional>
#include <string>

#include "run/work.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

struct ChildOutcome {
  std::optional<ResultRow> row;
  bool timed_out = false;
  std::string reason;  // why there is no row: a timeout, a signal, or what the child printed last
};

// Does the work of one case (case_work) in a child and kills it after timeout_s. Throws
// Interrupted.
ChildOutcome run_isolated(const Work& work, double timeout_s);

}  // namespace spmmbench
