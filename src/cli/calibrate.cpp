#include "cli/calibrate.hpp"

#include <fmt/format.h>

#include <optional>
#include <vector>

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

ResultDocument measure(const ResultRow& row, const RunContext& context) {
  const TemporaryFolder folder;
  RunOptions work = case_work(options_of(context), row);
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

  install_interrupt_handler(true);
  const std::size_t runs = cases.size() * static_cast<std::size_t>(repeat);
  Progress progress(runs, runs, false);
  std::optional<Calibration> calibration;
  for (int repetition = 0; repetition < repeat; ++repetition)
    for (const ResultRow* row : cases) {
      progress.start(fmt::format("{} n={} {}", row->matrix.name, row->n, row->kernel));
      const ResultDocument again = measure(*row, document.context);
      const std::string other = difference(document.context, again.context);
      if (!other.empty() && !force)
        throw Error(fmt::format("{} and this machine: {}", path, other), ExitCode::not_comparable);
      if (!calibration) {
        calibration.emplace(again.context);
        calibration->write(out);  // an unwritable place is found now, not after the last run
      }
      for (const ResultRow& measured : again.rows)
        if (comparison_key(measured) == comparison_key(*row) && measured.hot)
          calibration->add(comparison_key(*row), measured.hot->median_us);
      progress.done();
    }
  progress.clear();
  calibration->write(out);
  fmt::print("{} runs of {} cases: one run against another resolves {:.1f} %\n", repeat,
             cases.size(), calibration->min_effect() * 100);
  return ExitCode::ok;
} catch (const Interrupted&) {
  return ExitCode::interrupted;
}

}  // namespace spmmbench
