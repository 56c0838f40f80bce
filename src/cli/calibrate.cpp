#include "cli/calibrate.hpp"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "report/calibration.hpp"
#include "report/comparison.hpp"
#include "report/json.hpp"
#include "run/arguments.hpp"
#include "run/child.hpp"
#include "run/interrupt.hpp"
#include "run/progress.hpp"
#include "run/temporary_folder.hpp"

namespace spmmbench {
namespace {

constexpr int kFewestRepetitions = 3;  // two may lie close together by luck

// The row's own command, with the sampling limits and the device of its document.
std::vector<std::string> arguments_of(const ResultRow& row, const RunContext& context) {
  std::vector<std::string> arguments = split_command(row.command);
  if (arguments.size() < 2 || arguments[1] != "run")
    throw Error(fmt::format("row command '{}': expected spmmbench run ...", row.command));
  arguments.erase(arguments.begin());
  for (const auto& [key, flag] :
       {std::pair("noise_limit", "--noise"), std::pair("min_samples", "--min-samples"),
        std::pair("max_samples", "--max-samples"), std::pair("max_seconds", "--max-seconds")})
    arguments.insert(arguments.end(), {flag, context.protocol.at(key)});
  const bool cuda = context.device.kind == DeviceKind::cuda;
  arguments.insert(arguments.end(),
                   {"--device", std::to_string(cuda ? context.device.index : -1), "--quiet"});
  return arguments;
}

ResultDocument measure(std::vector<std::string> arguments) {
  const TemporaryFolder folder;
  const std::string json = folder.file("run.json");
  arguments.insert(arguments.end(), {"--json", json});
  Child child(kThisProgram, arguments);
  while (child.pump([](const std::string&) {})) {
    poll_interrupt();
    pause_briefly();
  }
  if (child.exit_code() != 0)
    throw Error(fmt::format("{}: {}", shell_command(arguments), child.ending()));
  return read_document(json);
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
      const ResultDocument again = measure(arguments_of(*row, document.context));
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
