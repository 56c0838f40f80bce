#include "cli/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/measure.hpp"
#include "core/numbered.hpp"
#include "io/output.hpp"
#include "io/tensor_path.hpp"
#include "process/child.hpp"
#include "process/interrupt.hpp"
#include "process/temporary_folder.hpp"
#include "report/answer.hpp"
#include "report/calibration.hpp"
#include "report/comparison.hpp"
#include "report/consistency.hpp"
#include "report/identity.hpp"
#include "report/json.hpp"
#include "run/progress.hpp"
#include "run/protocol.hpp"
#include "run/work.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

constexpr int kFewestRepetitions = 3;  // two may lie close together by luck

struct Case {
  std::string key;
  const ResultRow* row;
};

// How the document's cases were measured.
Work work_of_document(const std::string& path, const ResultDocument& document) try {
  return work_of(document.context);
} catch (const Error& error) {
  throw Error(fmt::format("{}: {}", path, error.what()), error.code());
}

std::vector<Case> cases_of(const std::string& path, const ResultDocument& document) {
  ComparisonKeys keys;
  std::vector<Case> cases;
  for (const ResultRow& row : document.rows) {
    std::string key = keys.next(row);
    if (row.status == Status::ok) cases.push_back({std::move(key), &row});
  }
  if (cases.empty()) throw Error(fmt::format("{}: no case is ok", path));
  return cases;
}

ResultDocument measure(const ResultRow& row, const Work& how) {
  const TemporaryFolder folder;
  const std::string json = folder.file("run.json");
  Child child(kThisProgram, {"worker", "--json", json}, describe_work(case_work(how, row)));
  while (child.pump([](const std::string&) {})) {
    poll_interrupt();
    pause_briefly();
  }
  if (child.exit_code() != 0) throw Error(fmt::format("{}: {}", row.command, child.ending()));
  return read_document(json);
}

// Everything that measuring the cases of the document reads, and what those that are not measured
// would read.
std::vector<std::string> inputs_of(const std::string& path, const ResultDocument& document,
                                   const Work& how) try {
  std::set<std::string> files = {path};
  for (const ResultRow& row : document.rows) {
    const Cases cases = case_work(how, row).cases;
    for (const std::string& matrix : cases.inputs) files.insert(file_of(matrix));
    for (std::string& file : files_read(cases, {})) files.insert(std::move(file));
  }
  return {files.begin(), files.end()};
} catch (const Error& error) {
  throw Error(fmt::format("{}: {}", path, error.what()), error.code());
}

// The hot median of the case in `again`. Throws Error where that measured something else.
double median_of(const Case& one, const std::string& path, const ResultDocument& again) {
  const ResultRow& row = *one.row;
  const auto same =
      std::find_if(again.rows.begin(), again.rows.end(),
                   [&](const ResultRow& measured) { return case_key(measured) == case_key(row); });
  const std::string name = fmt::format("{} n={} {}", row.matrix.source, row.n, label_of(row));
  if (same == again.rows.end())
    throw Error(fmt::format("{}: {} is another case now: the matrix has changed since", path, name),
                ExitCode::not_comparable);
  if (same->status != Status::ok || !same->hot)
    throw Error(fmt::format("{}: {}: {}: {}", path, name, to_string(same->status), same->reason));
  return same->hot->median_us;
}

// Measures every case once, and then adds all of their times.
void repeat_once(const std::string& path, const std::vector<Case>& cases, const Work& how,
                 const std::function<void(const RunContext&)>& check, Progress& progress,
                 std::optional<Calibration>& calibration) {
  std::vector<std::pair<std::string, double>> medians;
  for (const Case& one : cases) {
    const ResultRow& row = *one.row;
    progress.start(
        printable_message(fmt::format("{} n={} {}", row.matrix.name, row.n, row.kernel)));
    const ResultDocument again = measure(row, how);
    check(again.context);
    if (!calibration) calibration.emplace(again.context);
    medians.emplace_back(one.key, median_of(one, path, again));
    progress.done();
  }
  for (const auto& [key, us] : medians) calibration->add(key, us);
}

}  // namespace

ExitCode calibrate(const std::string& path, int repeat, bool force, const std::string& out) {
  if (repeat < kFewestRepetitions)
    throw Error(fmt::format("--repeat {}: expected at least {}", repeat, kFewestRepetitions));
  const ResultDocument document = read_document(path);
  require_consistent(path, document.rows);
  const std::vector<Case> cases = cases_of(path, document);
  const Work how = work_of_document(path, document);
  require_not_an_input(out, inputs_of(path, document, how));
  OutputFile file(out);  // an unwritable place is found before the first run, not after the last

  install_interrupt_handler(true);
  const std::size_t runs = cases.size() * static_cast<std::size_t>(repeat);
  Progress progress(runs, runs, false);
  const auto check = [&](const RunContext& context) {
    const std::string other = difference(document.context, context, false);
    if (!other.empty() && !force)
      throw Error(fmt::format("{} and this machine: {}", path, other), ExitCode::not_comparable);
  };
  std::optional<Calibration> calibration;
  int whole = 0;                // repetitions
  std::optional<Error> ending;  // what came before the last one
  try {
    for (; whole < repeat; ++whole) repeat_once(path, cases, how, check, progress, calibration);
  } catch (const Interrupted&) {
    ending.emplace("interrupted", ExitCode::interrupted);
  } catch (const Error& error) {
    ending = error;
  }
  progress.clear();
  if (whole < kFewestRepetitions)
    throw Error(fmt::format("{}; nothing is kept of {} whole repetitions: expected at least {}",
                            ending->what(), whole, kFewestRepetitions),
                ending->code());
  calibration->require_usable(out);
  calibration->write(file);
  const std::string summary =
      fmt::format("{} of {}: one run against another resolves {:.1f} %\n", numbered(whole, "run"),
                  numbered(cases.size(), "case"), calibration->resolution() * 100);
  if (out == kStandardOutput) write_status(summary);
  else print("{}", summary);
  if (ending)
    throw Error(fmt::format("{}; {} of {} repetitions are kept", ending->what(), whole, repeat),
                ending->code());
  return ExitCode::ok;
}

}  // namespace spmmbench
