#include "run/ledger.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/numbered.hpp"
#include "io/input.hpp"
#include "io/output.hpp"
#include "report/baselines.hpp"
#include "report/identity.hpp"
#include "report/json.hpp"
#include "report/terminal.hpp"
#include "run/command.hpp"
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
    : options_(options),
      warnings_(options.protocol.limits.noise, context.timer_floor_us),
      clocks_before_(context.clocks_before) {
  if (options.outputs.json.empty() && options.outputs.csv.empty()) return;
  journal_.emplace(RunOutputs{options.outputs.json, options.outputs.csv}, std::move(context),
                   options.cases.resume != Resume::none ? Earlier::take_over
                   : options.outputs.overwrite          ? Earlier::give_up
                                                        : Earlier::keep,
                   options.outputs.can_resume);
  for (const std::string& line : journal_->damaged()) say("spmmbench: {}\n", line);
}

std::optional<Recorded> Ledger::find(const ResultRow& row) const {
  if (journal_) return journal_->find(row);
  const auto it = options_.cases.known.find(case_key(row));
  return it == options_.cases.known.end() ? std::nullopt : std::optional(it->second);
}

std::map<std::string, Recorded> Ledger::known_of(const std::string& input) const {
  return journal_ ? journal_->cases_of(name_of_input(input)) : options_.cases.known;
}

MatrixSummary Ledger::expected(const std::string& input) const {
  MatrixSummary matrix;
  matrix.name = name_of_input(input);
  matrix.source = to_printable(input);
  const auto known = known_of(input);
  if (!known.empty()) matrix.sha256 = known.rbegin()->second.sha256;
  return matrix;
}

bool Ledger::pending(const ResultRow& planned) const {
  if (options_.cases.resume == Resume::none) return true;
  const std::optional<Recorded> recorded = find(planned);
  return is_pending(recorded ? std::optional(recorded->status) : std::nullopt,
                    options_.cases.resume);
}

bool Ledger::may_be_pending(const std::string& input, const std::vector<ResultRow>& planned) const {
  // An input that brings its own B has another N than planned.
  if (options_.cases.resume == Resume::failed) {
    const std::map<std::string, Recorded> cases = known_of(input);
    return std::any_of(cases.begin(), cases.end(), [](const auto& entry) {
      return to_repeat(entry.second.status, Resume::failed);
    });
  }
  if (!input.starts_with(kGeneratorPrefix)) return true;
  return std::any_of(planned.begin(), planned.end(),
                     [this](const ResultRow& row) { return pending(row); });
}

void Ledger::begin(std::size_t cases, std::size_t pending) {
  planned_ = cases;
  progress_.emplace(cases, pending, options_.outputs.quiet);
}

void Ledger::begin_case(const ResultRow& planned) {
  if (options_.outputs.jsonl && !options_.outputs.line_prefix.empty())
    show(options_.outputs.line_prefix + kBeginsCase + dump_line(to_json(planned)) + '\n');
}

void Ledger::add(ResultRow row, std::vector<ResultRow>& rows_of_matrix) {
  wrong_ |= row.status == Status::wrong;
  failed_ |= row.status == Status::failed || row.status == Status::timeout;
  measured_ |= row.status != Status::skipped;
  if (row.status != Status::ok && row.status != Status::skipped && unproved_++ == 0)
    first_unproved_ = fmt::format("{} n={} {} {}: {}: {}", row.matrix.source, row.n, row.precision,
                                  label_of(row), to_string(row.status), row.reason);
  warnings_.add(row);
  const std::size_t given_up = journal_ ? journal_->append(row) : 0;
  if (given_up > 0) {
    progress_->clear();
    say("spmmbench: {}: another matrix than in {}, which the run gives up\n", row.matrix.source,
        numbered(given_up, "recorded row"));
  }
  if (options_.outputs.jsonl) show(options_.outputs.line_prefix + dump_line(to_json(row)) + '\n');
  rows_of_matrix.push_back(std::move(row));
}

void Ledger::take_renamed(const MatrixSummary& matrix) {
  if (!journal_ || options_.cases.resume == Resume::none) return;
  std::set<std::string> named;
  for (const std::string& input : options_.cases.inputs) named.insert(name_of_input(input));
  const std::string former = journal_->take_renamed(matrix, named, [&](ResultRow& row) {
    row.matrix.name = matrix.name;
    row.matrix.source = matrix.source;
    row.command = case_command(options_.cases, row);
  });
  if (former.empty()) return;
  progress_->clear();
  say("spmmbench: {}: was called {}, and its rows have the new name\n", matrix.source, former);
}

void Ledger::print_matrix(std::vector<ResultRow>& rows) {
  if (rows.empty()) return;
  progress_->clear();
  progress_->matrix_done(rows.front().matrix.name);
  if (options_.outputs.tables && !options_.outputs.quiet && !options_.outputs.jsonl) {
    Baselines own(options_.outputs.table.calls);
    for (const ResultRow& row : rows) own.add(row);
    const Baselines& baselines = journal_ ? journal_->baselines() : own;
    TableStyle style = options_.outputs.table;
    if (journal_ && options_.cases.resume != Resume::none) add_earlier(rows, style);
    for (ResultRow& row : rows) baselines.fill(row);
    show(format_table(rows, style));
    summary_.add(rows, style);
  }
  rows.clear();
}

// Stars and answers are those of all rows of the matrix; only the new ones are shown.
void Ledger::add_earlier(std::vector<ResultRow>& rows, TableStyle& style) const {
  std::set<std::string> fresh;
  for (const ResultRow& row : rows) fresh.insert(case_key(row));
  for (ResultRow& row : journal_->rows_of(rows.front().matrix))
    if (!fresh.contains(case_key(row))) rows.push_back(std::move(row));
  style.shows = [fresh = std::move(fresh)](const ResultRow& row) {
    return fresh.contains(case_key(row));
  };
}

void Ledger::input_failed(const std::string& message, ExitCode code) {
  progress_->clear();
  constexpr std::string_view kPrefix = "spmmbench: ";  // messages of children begin with it too
  say("{}{}\n", message.starts_with(kPrefix) ? "" : kPrefix, message);
  (code == ExitCode::usage ? unreadable_ : incomplete_) = true;
}

// If the table cannot be written, the run goes on where rows are written to a file.
void Ledger::show(const std::string& text) try {
  if (!output_error_.empty()) return;
  write_output(text);
  flush_output();
} catch (const Error& error) {
  if (!journal_) throw;
  output_error_ = error.what();
}

void Ledger::write_outputs(const ClockState& clocks_after, bool interrupted) {
  if (const std::string kept = journal_->leave_outputs(); !kept.empty())
    return say("spmmbench: {}: left as it was, as this run has no row\n", kept);
  Ending ending = interrupted || incomplete_ ? Ending::interrupted
                  : unreadable_              ? Ending::partly_read
                                             : Ending::complete;
  // A run that repeats what failed measures nothing that the first run left out.
  if (options_.cases.resume == Resume::failed && journal_->earlier_ending() > ending) {
    ending = journal_->earlier_ending();
    say("spmmbench: {}: is not complete: --resume measures the rest\n",
        to_printable(options_.outputs.json.empty() ? options_.outputs.csv : options_.outputs.json));
  }
  const std::size_t named = journal_->damaged().size();
  const bool complete = journal_->finish(clocks_after, ending);
  incomplete_ |= complete != (ending == Ending::complete);
  for (std::size_t i = named; i < journal_->damaged().size(); ++i)
    say("spmmbench: {}: --resume measures it again\n", journal_->damaged()[i]);
}

// Rows of inputs that this run was not given.
void Ledger::note_other_rows() const {
  constexpr std::size_t kMostNamed = 3;
  std::map<std::string, std::size_t> others = journal_->count_by_name();
  for (const std::string& input : options_.cases.inputs) others.erase(name_of_input(input));
  if (others.empty()) return;
  std::size_t rows = 0;
  std::vector<std::string> names;
  for (const auto& [name, count] : others) {
    rows += count;
    if (names.size() < kMostNamed) names.push_back(name);
  }
  if (others.size() > kMostNamed) names.push_back("...");
  say("spmmbench: kept: {} of {} not among these inputs: {}\n", numbered(rows, "row"),
      numbered(others.size(), "matrix", "matrices"), fmt::join(names, ", "));
}

void Ledger::tell_failures() const {
  if (!options_.outputs.tells_failures || !(wrong_ || failed_)) return;
  if (unproved_ == 0)
    return say("spmmbench: no case of this run failed, but recorded ones did or are wrong\n");
  say("spmmbench: {} of {} failed or wrong, the first: {}\n", unproved_, numbered(planned_, "case"),
      printable_message(first_unproved_));
}

ExitCode Ledger::finish(const ClockState& clocks_after, bool interrupted) {
  progress_->clear();
  show(summary_.format(options_.outputs.table));
  warnings_.add_clocks(clocks_before_, clocks_after);
  if (!options_.outputs.quiet)
    for (const std::string& warning : warnings_.lines())
      write_status(
          wrap("warning: " + printable_message(warning), terminal_width(STDERR_FILENO), 4) + '\n');
  if (journal_) {
    // The exit code describes the whole output file, including rows of an earlier run.
    wrong_ |= journal_->any([](Status s) { return s == Status::wrong; });
    failed_ |= journal_->any([](Status s) { return to_repeat(s, Resume::rest); });
    measured_ |= journal_->any([](Status s) { return s != Status::skipped; });
    if (options_.cases.resume != Resume::none) note_other_rows();
    write_outputs(clocks_after, interrupted);
  }
  if (!output_error_.empty()) throw Error(output_error_);
  if (interrupted) {
    const bool resumable = options_.outputs.can_resume &&
                           !journal_of({options_.outputs.json, options_.outputs.csv}).empty();
    if (journal_)
      say("spmmbench: interrupted: what was measured is kept{}\n",
          resumable ? ", and --resume goes on" : "");
    return ExitCode::interrupted;
  }
  tell_failures();
  if (wrong_) return ExitCode::wrong_result;
  if (failed_ || incomplete_) return ExitCode::some_failed;
  if (unreadable_) return ExitCode::usage;
  // Where a child of --devices resumes, its parent has the earlier rows.
  const bool has_all_rows = journal_ || options_.cases.resume == Resume::none;
  if (planned_ > 0 && !measured_ && has_all_rows) {
    say("spmmbench: nothing was measured: every case was skipped\n");
    return ExitCode::some_failed;
  }
  return ExitCode::ok;
}

}  // namespace spmmbench
