#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "cli/case_options.hpp"
#include "cli/commands.hpp"
#include "cli/lists.hpp"
#include "cli/measure.hpp"
#include "io/output.hpp"
#include "report/answer.hpp"
#include "report/terminal.hpp"
#include "run/command.hpp"
#include "run/counters.hpp"
#include "run/runner.hpp"
#include "run/work.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

struct ProfileArguments {
  CaseOptions cases;
  bool run = false, cold = false;
};

bool is_on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((std::filesystem::path(folder) / program).c_str(), X_OK) == 0) return true;
  return false;
}

// The row with the kernel that it launched, where it names several that it measured: to measure
// them under a profiler could pick another.
ResultRow as_launched(ResultRow row) {
  if (row.pick && row.pick->measured()) row.kernel = row.pick->kernel;
  return row;
}

// The command that a person can copy: ncu around `spmmbench profile` of the case of one row.
std::string ncu_command(const Work& work, const ResultRow& row, bool cold) {
  std::string text = "ncu";
  for (const std::string& argument : ncu_arguments(cold)) text += ' ' + shell_word(argument);
  return fmt::format("{} {} profile {} --device {}", text, shell_word(process_arguments().front()),
                     case_arguments(work.cases, as_launched(row)), work.protocol.device);
}

// One launch of the case of one row.
Work launch_work(Work work, const ResultRow& row) {
  work = case_work(std::move(work), as_launched(row));
  work.protocol.one_launch = true;
  return work;
}

bool runs_on_gpu(const ResultRow& row) {
  return Registry<Kernel>::instance().at(Spec::parse(row.kernel).name).info().device ==
         DeviceKind::cuda;
}

// One launch of every case, for the profiler that this process runs under.
ExitCode launch_once(RunOptions options, bool cold) {
  options.protocol.one_launch = true;
  // The profiler that this process runs under sees the launches of plug-ins.
  options.protocol.plugins_here = true;
  options.outputs.quiet = true;
  bool any_on_gpu = false;
  options.outputs.after_case = [&](ResultRow& row) {
    print("{} n={} {} {}: {}\n", row.matrix.name, row.n, label_of(row), types_of(row),
          row.status == Status::ok ? "one launch, verified" : row.reason);
    if (row.status != Status::ok || !runs_on_gpu(row)) return;
    any_on_gpu = true;
    print("  {}\n", ncu_command({options.cases, options.protocol}, row, cold));
    std::fflush(stdout);
  };
  const ExitCode code = run_benchmark(options, process_arguments());
  if (code == ExitCode::ok && !any_on_gpu)
    say("spmmbench: no case ran on the GPU, so there is nothing that ncu could count\n");
  return code;
}

// What was counted of a row, in words.
struct Counted {
  std::string matrix, n, label, types, figures;
};

Counted counted(const ResultRow& row) {
  const auto metric = [&](const char* name) { return row.metrics.at(name); };
  return {row.matrix.name, std::to_string(row.n), label_of(row), types_of(row),
          fmt::format("{:>5.1f} {:>6.1f} {:>8.1f} {:>8.1f} {:>5.1f}",
                      metric("profile_sm_throughput_pct"), metric("profile_tensor_pipe_pct"),
                      metric("profile_dram_bytes") / 1e6, metric("profile_l2_bytes") / 1e6,
                      metric("profile_l2_hit_pct"))};
}

// A line for each row below the names of the columns.
std::string counters_table(std::vector<Counted> rows, bool cold) {
  rows.insert(rows.begin(),
              {cold ? "one launch, L2 flushed" : "one launch, L2 kept", "n", "kernel", "in",
               fmt::format("{:>5} {:>6} {:>8} {:>8} {:>5}", "SM %", "tens %", "DRAM MB", "L2 MB",
                           "hit %")});
  constexpr std::size_t kName = 24;  // a longer one is cut; what tells rows apart is not
  std::size_t label = 0, types = 0;
  for (const Counted& row : rows) {
    label = std::max(label, display_width(row.label));
    types = std::max(types, display_width(row.types));
  }
  std::string text;
  for (const Counted& row : rows)
    text += fmt::format("{} {:>5} {} {} {}\n", pad_right(clip(row.matrix, kName), kName), row.n,
                        pad_right(row.label, label), pad_right(row.types, types), row.figures);
  return text;
}

// Every case measured as by `run`, then launched once under ncu.
ExitCode count(RunOptions options, const std::string& config, bool cold) {
  if (!is_on_path("ncu"))
    throw Error(
        "--run: ncu is not on the PATH (it comes with the CUDA toolkit, as Nsight Compute); "
        "without --run its command is printed");
  std::vector<Counted> table;
  bool failed = false;
  options.outputs.after_case = [&](ResultRow& row) {
    if (row.status != Status::ok || !runs_on_gpu(row)) return;
    try {
      row.metrics.merge(count_launch(launch_work({options.cases, options.protocol}, row), cold));
      table.push_back(counted(row));
    } catch (const Error& error) {
      failed = true;
      say("spmmbench: {} n={} {}: {}\n", row.matrix.name, row.n, label_of(row), error.what());
    }
  };
  const bool tables =
      options.outputs.json != kStandardOutput && options.outputs.csv != kStandardOutput;
  const ExitCode code = measure(std::move(options), config);
  if (!table.empty() && tables) print("\n{}", counters_table(std::move(table), cold));
  return code == ExitCode::ok && failed ? ExitCode::some_failed : code;
}

}  // namespace

void add_profile(CLI::App& app, ExitCode& exit_code) {
  auto in = std::make_shared<ProfileArguments>();
  CLI::App* command = app.add_subcommand(
      "profile", "Profile one launch of each case: print or run the ncu command for it");
  RunOptions& o = in->cases.options;
  add_case_options(*command, in->cases);
  command->get_option("--kernel")
      ->required()
      ->description("Kernels by NAME or glob, with options as NAME?key=value&key=value");
  CLI::Option* run = command->add_flag(
      "--run", in->run,
      "Measure, then run ncu: use of SMs and tensor cores, DRAM and L2 bytes, L2 hits");
  command->add_flag(
      "--cold", in->cold,
      "Flush the caches before the launch; else they hold what earlier launches left");
  add_output_option(*command, "--json", o.outputs.json,
                    "Write the result document, counters among the metrics; -: on standard output")
      ->needs(run);
  add_output_option(*command, "--csv", o.outputs.csv,
                    "Write the rows as CSV; -: on standard output")
      ->needs(run);
  command
      ->add_flag("--overwrite", o.outputs.overwrite,
                 "Discard what an unfinished run left in the journal of the output file")
      ->needs(run);
  command->callback([in, command, &exit_code] {
    RunOptions options = resolve(in->cases);
    options.cases.baselines = options.outputs.can_resume = false;
    exit_code = in->run ? count(std::move(options), config_file(*command), in->cold)
                        : launch_once(std::move(options), in->cold);
  });
}

}  // namespace spmmbench
