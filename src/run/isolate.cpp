#include "run/isolate.hpp"

#include <fmt/format.h>

#include "core/steady_seconds.hpp"
#include "process/child.hpp"
#include "process/interrupt.hpp"
#include "report/json.hpp"
#include "run/work.hpp"

namespace spmmbench {

ChildOutcome run_isolated(const Work& work, double timeout_s) {
  ChildOutcome outcome;
  Child child(kThisProgram, {"worker"}, describe_work(work));
  const double deadline = steady_seconds() + timeout_s;
  const auto keep = [&](const std::string& line) {
    if (auto row = row_from_line(line)) outcome.row = std::move(row);
  };
  while (child.pump(keep)) {
    poll_interrupt();
    if (steady_seconds() > deadline) {
      child.kill();
      child.pump(keep);
      outcome.timed_out = !outcome.row;
      outcome.reason = fmt::format("killed after {:g} s", timeout_s);
      return outcome;
    }
    pause_briefly();
  }
  if (!outcome.row) outcome.reason = child.ending();
  return outcome;
}

}  // namespace spmmbench
