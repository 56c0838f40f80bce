#include "run/isolate.hpp"

#include <fmt/format.h>

#include <random>
#include <utility>
#include <vector>

#include "core/steady_seconds.hpp"
#include "process/child.hpp"
#include "process/interrupt.hpp"
#include "report/identity.hpp"
#include "report/json.hpp"
#include "run/work.hpp"

namespace spmmbench {

namespace {

std::string new_nonce() {
  std::random_device random;
  return fmt::format("{:08x}{:08x} ", random(), random());
}

// The exit code of a run whose only case ends with this status.
ExitCode exit_code_of(Status status) {
  switch (status) {
    case Status::ok: return ExitCode::ok;
    case Status::wrong: return ExitCode::wrong_result;
    default: return ExitCode::some_failed;
  }
}

// Says why the row is not believed; empty where it is.
std::string why_refused(const std::vector<ResultRow>& rows, const ResultRow& planned,
                        const Child& child) {
  const ResultRow& row = rows.front();
  if (rows.size() > 1) return fmt::format("its process gave {} rows", rows.size());
  if (case_key(row) != case_key(planned)) return "its process gave a row of another case";
  if (child.exit_code() != static_cast<int>(exit_code_of(row.status)))
    return fmt::format("its process gave a row that is {}, and ended otherwise: {}",
                       to_string(row.status), child.ending());
  return {};
}

}  // namespace

ChildOutcome run_isolated(Work work, const ResultRow& planned, double timeout_s) {
  const std::string nonce = new_nonce();
  work.protocol.nonce = nonce;
  std::vector<ResultRow> rows;
  Child child(kThisProgram, {"worker"}, describe_work(work));
  const double deadline = steady_seconds() + timeout_s;
  const auto keep = [&](const std::string& line) {
    if (!line.starts_with(nonce)) return;
    if (auto row = row_from_line(line.substr(nonce.size()))) rows.push_back(std::move(*row));
  };
  bool killed = false;
  while (child.pump(keep)) {
    poll_interrupt();
    if (steady_seconds() > deadline) {
      child.kill();
      child.pump(keep);
      killed = true;
      break;
    }
    pause_briefly();
  }
  ChildOutcome outcome;
  if (killed) {
    outcome.timed_out = true;
    outcome.reason = fmt::format("killed after {:g} s", timeout_s);
  } else if (rows.empty()) {
    outcome.reason = child.ending();
  } else if (outcome.reason = why_refused(rows, planned, child); outcome.reason.empty()) {
    outcome.row = std::move(rows.front());
  }
  return outcome;
}

}  // namespace spmmbench
