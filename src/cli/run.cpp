#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "cli/case_options.hpp"
#include "cli/commands.hpp"
#include "cli/lists.hpp"
#include "gpu/backend.hpp"
#include "run/runner.hpp"

namespace spmmbench {
namespace {

struct RunArguments {
  CaseOptions cases;
  std::string devices;
  bool resume = false, retry_failed = false, no_baselines = false;
};

std::vector<int> parse_devices(const std::string& text) {
  std::vector<int> devices;
  if (text == "all") {
    const CudaProbe cuda = probe_cuda();
    for (const DeviceInfo& device : cuda.devices) devices.push_back(device.index);
    if (devices.empty()) throw Error(fmt::format("--devices all: {}", cuda.reason));
    return devices;
  }
  for (const std::string& item : split_list(text)) {
    int device = 0;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), device);
    if (error != std::errc{} || end != item.data() + item.size() || device < -1)
      throw Error(fmt::format("--devices {}: expected all, or CUDA devices such as 0,2", text));
    if (std::find(devices.begin(), devices.end(), device) != devices.end())
      throw Error(fmt::format("--devices {}: device {} is there twice", text, device));
    devices.push_back(device);
  }
  return devices;
}

ExitCode run(const RunArguments& in) {
  RunOptions options = resolve(in.cases);
  options.baselines = !in.no_baselines;
  options.resume = in.retry_failed ? Resume::failed : in.resume ? Resume::rest : Resume::none;
  if (options.resume != Resume::none && options.json.empty() && options.csv.empty())
    throw Error("--resume and --retry-failed: expected the output file to go on with (--json)");
  if (!in.devices.empty()) options.devices = parse_devices(in.devices);
  return run_benchmark(options, process_arguments());
}

}  // namespace

void add_run(CLI::App& app, ExitCode& exit_code) {
  auto in = std::make_shared<RunArguments>();
  CLI::App* command =
      app.add_subcommand("run", "Measure kernels on matrices, verified, beside every baseline");
  RunOptions& o = in->cases.options;
  add_case_options(*command, in->cases);
  command->add_flag("--no-baselines", in->no_baselines,
                    "Do not add the vendor baselines that speed-ups need");
  command->add_option("--json", o.json, "Write the result document");
  command->add_option("--csv", o.csv, "Write the rows as CSV");
  command->add_flag("--jsonl", o.jsonl, "Print each row as a line of JSON when its case ends");
  command->add_flag("-q,--quiet", o.quiet, "No status line and no table");
  CLI::Option* resume =
      command->add_flag("--resume", in->resume,
                        "Go on with the output file: measure what it lacks, repeat what failed");
  command
      ->add_flag("--retry-failed", in->retry_failed,
                 "Repeat only what failed, timed out or was wrong in the output file")
      ->excludes(resume);
  CLI::Option* isolate =
      command->add_flag("--isolate", o.isolate, "Each case in a process of its own");
  command->add_option("--timeout", o.timeout_s, "Seconds until an isolated case is killed")
      ->capture_default_str()
      ->check(require_positive)
      ->needs(isolate);
  command->add_option("--shard", in->cases.shard,
                      "I/N: every N-th input from the I-th on, for job arrays; join with merge");
  command
      ->add_option("--devices", in->devices,
                   "Spread the matrices over these CUDA devices: all, or 0,2")
      ->excludes("--device");
  add_sampling_options(*command, o);
  command->callback([in, &exit_code] { exit_code = run(*in); });
}

}  // namespace spmmbench
