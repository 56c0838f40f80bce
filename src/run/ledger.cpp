#include "run/ledger.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "report/baselines.hpp"
#include "report/json.hpp"
#include "report/terminal.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

bool to_repeat(Status status, Resume resume) {
  return status == Status::failed || status == Status::timeout ||
         (status == Status::wrong && resume == Resume::failed);
}

}  // namespace

bool is_pending(std::optional<Status> recorded, Resume resume) {
  if (resume == Resume::none) return true;
  return recorded ? to_repeat(*recorded, resume) : resume == Resume::rest;
}

Ledger::Ledger(const RunOptions& options, RunContext context)
    : options_(options), warnings_(options.limits.noise, context.timer_floor_us) {
  if (!options.json.empty() || !options.csv.empty())
    journal_.emplace(Journal::Paths{options.json, options.csv}, std::move(context),
                     options.resume != Resume::none);
}

std::optional<Status> Ledger::status_of(const std::string& key) const {
  if (journal_) return journal_->status_of(key);
  const auto it = options_.known.find(key);
  return it == options_.known.end() ? std::nullopt : std::optional(it->second);
}

std::map<std::string, Status> Ledger::known_of(const std::string& input) const {
  return journal_ ? journal_->statuses_of(to_printable(input)) : options_.known;
}

bool Ledger::pending(const ResultRow& planned) const {
  return options_.resume == Resume::none ||
         is_pending(status_of(case_key(planned)), options_.resume);
}

bool Ledger::may_be_pending(const std::string& input, const std::vector<ResultRow>& planned) const {
  // An input that brings its own B has another N than planned.
  if (options_.resume == Resume::failed) {
    const std::map<std::string, Status> cases = known_of(input);
    return std::any_of(cases.begin(), cases.end(),
                       [](const auto& entry) { return to_repeat(entry.second, Resume::failed); });
  }
  return std::any_of(planned.begin(), planned.end(),
                     [this](const ResultRow& row) { return pending(row); });
}

void Ledger::begin(std::size_t cases, std::size_t pending) {
  progress_.emplace(cases, pending, options_.quiet);
}

void Ledger::add(ResultRow row, std::vector<ResultRow>& rows_of_matrix) {
  wrong_ |= row.status == Status::wrong;
  failed_ |= row.status == Status::failed || row.status == Status::timeout;
  warnings_.add(row);
  if (journal_) journal_->append(row);
  if (options_.jsonl) {
    fmt::print("{}\n", dump_line(to_json(row)));
    std::fflush(stdout);
  }
  rows_of_matrix.push_back(std::move(row));
}

void Ledger::print_matrix(std::vector<ResultRow>& rows) {
  if (rows.empty()) return;
  progress_->clear();
  progress_->matrix_done(rows.front().matrix.name);
  if (options_.tables && !options_.quiet && !options_.jsonl) {
    Baselines own(options_.table.calls);
    for (const ResultRow& row : rows) own.add(row);
    const Baselines& baselines = journal_ ? journal_->baselines() : own;
    for (ResultRow& row : rows) baselines.fill(row);
    fmt::print("{}", format_table(rows, options_.table));
    std::fflush(stdout);
    summary_.add(rows);
  }
  rows.clear();
}

void Ledger::input_failed(const std::string& message, ExitCode code) {
  progress_->clear();
  constexpr std::string_view kPrefix = "spmmbench: ";  // of a child's message too
  fmt::print(stderr, "{}{}\n", message.starts_with(kPrefix) ? "" : kPrefix, message);
  (code == ExitCode::usage ? unreadable_ : incomplete_) = true;
}

ExitCode Ledger::finish(const ClockState& clocks_after, bool interrupted) {
  progress_->clear();
  fmt::print("{}", summary_.format(options_.table));
  std::fflush(stdout);
  if (!options_.quiet)
    for (const std::string& warning : warnings_.lines())
      fmt::print(stderr, "{}\n", wrap("warning: " + warning, terminal_width(STDERR_FILENO), 4));
  if (journal_) {
    // The exit code speaks of the whole output file, rows kept from an earlier run included.
    wrong_ |= journal_->any([](Status s) { return s == Status::wrong; });
    failed_ |= journal_->any([](Status s) { return to_repeat(s, Resume::rest); });
    journal_->finish(clocks_after, !interrupted && !incomplete_);
  }
  if (interrupted) return ExitCode::interrupted;
  if (wrong_) return ExitCode::wrong_result;
  if (failed_ || incomplete_) return ExitCode::some_failed;
  return unreadable_ ? ExitCode::usage : ExitCode::ok;
}

}  // namespace spmmbench
