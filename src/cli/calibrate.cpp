#include "cli/calibrate.hpp"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/output.hpp"
#include "process/child.hpp"
#include "process/interrupt.hpp"
#include "process/temporary_folder.hpp"
#include "report/calibration.hpp"
#include "report/comparison.hpp"
#include "report/json.hpp"
#include "run/progress.hpp"
#include "run/protocol.hpp"
#include "run/work.hpp"

namespace spmmbench {
namespace {

constexpr int kFewestRepetitions = 3;  // two may lie close together by luck

struct Case {
  std::string key;
  const ResultRow* row;
};

// How the document's cases were measured.
RunOptions options_of_document(const std::string& path, const ResultDocument& document) try {
  return options_of(document.context);
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

ResultDocument measure(const ResultRow& row, const RunOptions& options) {
  const TemporaryFolder folder;
  RunOptions work = case_work(options, row);
  work.jsonl = false;
  work.json = folder.file("run.json");
  Child child(kThisProgram, {"worker"}, describe_work(work));
  while (child.pump([](const std::string&) {})) {
    poll_interrupt();
    pause_briefly();
  }
  if (child.exit_code() != 0) throw Error(fmt::format("{}: {}", row.command, child.ending()));
  return read_document(work.json);
}

// Measures every case once, and then adds all of their times.
void repeat_once(const std::vector<Case>& cases, const RunOptions& options,
                 const std::function<void(const RunContext&)>& check, Progress& progress,
                 std::optional<Calibration>& calibration) {
  std::vector<std::pair<std::string, double>> medians;
  for (const auto& [key, row] : cases) {
    progress.start(fmt::format("{} n={} {}", row->matrix.name, row->n, row->kernel));
    const ResultDocument again = measure(*row, options);
    check(again.context);
    if (!calibration) calibration.emplace(again.context);
    for (const ResultRow& measured : again.rows)
      if (comparison_key(measured) == comparison_key(*row) && measured.hot)
        medians.emplace_back(key, measured.hot->median_us);
    progress.done();
  }
  for (const auto& [key, us] : medians) calibration->add(key, us);
}

}  // namespace

ExitCode calibrate(const std::string& path, int repeat, bool force, const std::string& out) {
  if (repeat < kFewestRepetitions)
    throw Error(fmt::format("--repeat {}: expected at least {}", repeat, kFewestRepetitions));
  const ResultDocument document = read_document(path);
  const std::vector<Case> cases = cases_of(path, document);
  const RunOptions options = options_of_document(path, document);
  require_not_an_input(out, {path});
  OutputFile file(out);  // an unwritable place is found before the first run, not after the last

  install_interrupt_handler(true);
  const std::size_t runs = cases.size() * static_cast<std::size_t>(repeat);
  Progress progress(runs, runs, false);
  const auto check = [&](const RunContext& context) {
    const std::string other = difference(document.context, context);
    if (!other.empty() && !force)
      throw Error(fmt::format("{} and this machine: {}", path, other), ExitCode::not_comparable);
  };
  std::optional<Calibration> calibration;
  int whole = 0;                // repetitions
  std::optional<Error> ending;  // what came before the last one
  try {
    for (; whole < repeat; ++whole) repeat_once(cases, options, check, progress, calibration);
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
  print("{} runs of {} cases: one run against another resolves {:.1f} %\n", whole, cases.size(),
        calibration->resolution() * 100);
  if (ending)
    throw Error(fmt::format("{}; {} of {} repetitions are kept", ending->what(), whole, repeat),
                ending->code());
  return ExitCode::ok;
}

}  // namespace spmmbench
