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

// Does the work of one case (case_work), that of `planned`, in a child and kills it after
// timeout_s. A row counts only if it is the only one, of that case, with the nonce that the child
// was given, and if the child ended as one with this row does. Throws Interrupted.
ChildOutcome run_isolated(Work work, const ResultRow& planned, double timeout_s);

}  // namespace spmmbench
