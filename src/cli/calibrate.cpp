#include "cli/calibrate.hpp"

#include <fmt/format.h>

#include <optional>
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

// How the document's cases were measured.
RunOptions options_of_document(const std::string& path, const ResultDocument& document) try {
  return options_of(document.context);
} catch (const Error& error) {
  throw Error(fmt::format("{}: {}", path, error.what()), error.code());
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

}  // namespace

ExitCode calibrate(const std::string& path, int repeat, bool force, const std::string& out) try {
  if (repeat < kFewestRepetitions)
    throw Error(fmt::format("--repeat {}: expected at least {}", repeat, kFewestRepetitions));
  const ResultDocument document = read_document(path);
  std::vector<const ResultRow*> cases;
  for (const ResultRow& row : document.rows)
    if (row.status == Status::ok) cases.push_back(&row);
  if (cases.empty()) throw Error(fmt::format("{}: no case is ok", path));
  const RunOptions options = options_of_document(path, document);
  require_not_an_input(out, {path});
  OutputFile file(out);  // an unwritable place is found before the first run, not after the last

  install_interrupt_handler(true);
  const std::size_t runs = cases.size() * static_cast<std::size_t>(repeat);
  Progress progress(runs, runs, false);
  std::optional<Calibration> calibration;
  for (int repetition = 0; repetition < repeat; ++repetition)
    for (const ResultRow* row : cases) {
      progress.start(fmt::format("{} n={} {}", row->matrix.name, row->n, row->kernel));
      const ResultDocument again = measure(*row, options);
      const std::string other = difference(document.context, again.context);
      if (!other.empty() && !force)
        throw Error(fmt::format("{} and this machine: {}", path, other), ExitCode::not_comparable);
      if (!calibration) calibration.emplace(again.context);
      for (const ResultRow& measured : again.rows)
        if (comparison_key(measured) == comparison_key(*row) && measured.hot)
          calibration->add(comparison_key(*row), measured.hot->median_us);
      progress.done();
    }
  progress.clear();
  calibration->require_usable(out);
  calibration->write(file);
  print("{} runs of {} cases: one run against another resolves {:.1f} %\n", repeat, cases.size(),
        calibration->resolution() * 100);
  return ExitCode::ok;
} catch (const Interrupted&) {
  return ExitCode::interrupted;
}

}  // namespace spmmbench
