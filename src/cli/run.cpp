#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <memory>

#include "cli/case_options.hpp"
#include "cli/commands.hpp"
#include "cli/lists.hpp"
#include "cli/measure.hpp"
#include "cli/table_options.hpp"
#include "core/contains.hpp"
#include "core/parse_number.hpp"
#include "gpu/backend.hpp"
#include "io/file.hpp"
#include "io/output.hpp"
#include "multi/partition.hpp"
#include "plugin/plugin.hpp"

namespace spmmbench {
namespace {

struct RunArguments {
  CaseOptions cases;
  TableOptions table;
  std::vector<std::string> tags;
  std::string devices, calls_curve, a_memory;
  std::string split = "columns";
  bool resume = false, retry_failed = false, no_baselines = false;
  CLI::Option *timeout = nullptr, *split_option = nullptr;
};

std::vector<int> parse_devices(const std::string& text) {
  std::vector<int> devices;
  if (text == "all") {
    const CudaProbe cuda = probe_cuda();
    for (const DeviceInfo& device : cuda.devices) devices.push_back(device.index);
    if (devices.empty()) throw Error(fmt::format("--devices all: {}", cuda.reason));
    return devices;
  }
  for (const std::string& item : split_list(text, "--devices")) {
    const auto device = parse_number<int>(item);
    if (!device || *device < -1)
      throw Error(fmt::format("--devices {}: expected all, or CUDA devices such as 0,2", text));
    if (contains(devices, *device))
      throw Error(fmt::format("--devices {}: device {} is there twice", text, *device));
    devices.push_back(*device);
  }
  return devices;
}

DeviceKind parse_memory(const RunArguments& in) {
  if (in.a_memory != "host" && in.a_memory != "cuda")
    throw Error(fmt::format("--a-memory {}: expected host or cuda", in.a_memory));
  return in.a_memory == "cuda" ? DeviceKind::cuda : DeviceKind::host;
}

std::map<std::string, std::string> parse_tags(const std::vector<std::string>& tags) {
  std::map<std::string, std::string> parsed;
  for (const std::string& tag : tags) {
    const std::size_t equals = tag.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(fmt::format("--tag {}: expected KEY=VALUE", tag));
    if (!parsed.emplace(tag.substr(0, equals), tag.substr(equals + 1)).second)
      throw Error(fmt::format("--tag {}: {} is given twice", tag, tag.substr(0, equals)));
  }
  return parsed;
}

// `spmmbench run gen:rmat?scale=18&edge_factor=16` without quotes: the shell runs what stands
// before the `&` in the background and takes the rest for another command.
void warn_of_unquoted_ampersand() {
  const std::string last = process_arguments().back();
  if (last.find('?') == std::string::npos || last.find('&') != std::string::npos) return;
  // A shell without job control makes commands in the background ignore SIGINT.
  struct sigaction action = {};
  sigaction(SIGINT, nullptr, &action);
  const pid_t foreground = tcgetpgrp(STDIN_FILENO);
  const bool in_background =
      foreground > 0 ? foreground != getpgrp() : action.sa_handler == SIG_IGN;
  if (in_background)
    say("warning: running in the background with '{}' as the last argument: if an & "
        "followed it, quote the whole of it\n",
        last);
}

// --retry-failed needs the rows of an earlier run: a document, or the journal of one or of a CSV.
void require_rows(const RunOptions& options) {
  if (!has_content(journal_of({options.outputs.json, options.outputs.csv})) &&
      !has_content(options.outputs.json))
    throw Error(
        fmt::format("--retry-failed: {} has no rows of an earlier run",
                    options.outputs.json.empty() ? options.outputs.csv : options.outputs.json));
}

// A product on several GPUs, in ranks that measure it together.
void divide(const RunArguments& in, RunOptions& options) {
  Cases& cases = options.cases;
  if (cases.gpus < 1) throw Error("--gpus: expected at least 1");
  if (cases.gpus == 1 && in.split_option->count() > 0)
    throw Error("--split: expected --gpus of at least 2");
  if (cases.gpus == 1) return;
  cases.split = to_string(parse_split(in.split));
  const Protocol& how = options.protocol;
  const std::size_t devices = options.machines.devices.size();
  if (devices > 0 && devices != static_cast<std::size_t>(cases.gpus))
    throw Error(fmt::format("--devices: expected {}, one for each of --gpus", cases.gpus));
  const std::pair<bool, const char*> others[] = {{how.isolate, "--isolate"},
                                                 {how.interleave, "--interleave"},
                                                 {!how.calls_curve.empty(), "--calls-curve"},
                                                 {how.a_memory == DeviceKind::cuda, "--a-memory"},
                                                 {how.repeat_check, "--repeat-check"},
                                                 {!how.save_failing.empty(), "--save-failing"},
                                                 {!cases.b_file.empty(), "--b"},
                                                 {!cases.scalars.plain(), "--alpha and --beta"},
                                                 {cases.batch > 1, "--batch"}};
  for (const auto& [given, name] : others)
    if (given) throw Error(fmt::format("{}: not with --gpus of more than 1", name));
}

ExitCode run(const RunArguments& in, const std::string& config) {
  RunOptions options = resolve(in.cases);
  options.outputs.table = resolve(in.table);
  options.outputs.calls_given = in.table.calls.has_value();
  options.outputs.tags = parse_tags(in.tags);
  options.cases.baselines = !in.no_baselines;
  options.cases.resume = in.retry_failed ? Resume::failed : in.resume ? Resume::rest : Resume::none;
  if (options.cases.resume != Resume::none && options.outputs.json.empty() &&
      options.outputs.csv.empty())
    throw Error("--resume and --retry-failed: expected the output file to go on with (--json)");
  if (options.cases.resume == Resume::failed) require_rows(options);
  if (in.timeout->count() > 0 && !options.protocol.isolate && options.cases.gpus == 1 &&
      std::none_of(options.cases.kernels.begin(), options.cases.kernels.end(), names_plugin))
    throw Error("--timeout requires --isolate, --gpus or a plug-in");
  if (!in.devices.empty()) options.machines.devices = parse_devices(in.devices);
  if (!in.calls_curve.empty())
    options.protocol.calls_curve = parse_range_list(in.calls_curve, "--calls-curve");
  if (!options.protocol.calls_curve.empty() && options.cases.scalars.beta != 0)
    throw Error(
        "--calls-curve: not with --beta, with which a call changes what the next one reads");
  if (!in.a_memory.empty()) options.protocol.a_memory = parse_memory(in);
  if (!in.calls_curve.empty() && options.outputs.json.empty() && !options.outputs.jsonl)
    throw Error("--calls-curve: expected --json or --jsonl, which alone have what it measures");
  divide(in, options);
  options.outputs.tells_failures = options.outputs.quiet;
  if (!options.outputs.quiet) warn_of_unquoted_ampersand();
  if (!options.outputs.quiet && options.cases.inputs.empty())
    say("spmmbench: --shard {}: has none of the inputs\n", options.outputs.shard);
  return measure(std::move(options), config);
}

// What is printed and written.
void add_outputs(CLI::App& command, RunArguments& in) {
  RunOptions& o = in.cases.options;
  add_output_option(command, "--json", o.outputs.json,
                    "Write the result document; -: on standard output");
  add_output_option(command, "--csv", o.outputs.csv,
                    "Write the rows as CSV; -: on standard output");
  command
      .add_option("--tag", in.tags, "KEY=VALUE, kept in the document's context; may be given again")
      ->allow_extra_args(false);
  command.add_flag(
      "--jsonl", o.outputs.jsonl,
      "Print each row as a line of JSON when its case ends, without speed-ups and break-even");
  command.add_flag("-q,--quiet", o.outputs.quiet,
                   "No status line, no table and no warnings of times");
  command.add_flag("--dry-run", o.outputs.dry_run,
                   "Name the cases that would be measured, and end");
}

// What becomes of the output of an unfinished run.
void add_resuming(CLI::App& command, RunArguments& in) {
  RunOptions& o = in.cases.options;
  CLI::Option* resume =
      command.add_flag("--resume", in.resume,
                       "Go on with the output file: measure what it lacks, repeat what failed");
  command
      .add_flag("--retry-failed", in.retry_failed,
                "Repeat only what failed, timed out or was wrong in the output file")
      ->excludes(resume);
  command
      .add_flag("--overwrite", o.outputs.overwrite,
                "Discard what an unfinished run left in the journal of the output file")
      ->excludes(resume)
      ->excludes("--retry-failed");
}

// Several jobs, several GPUs.
void add_dividing(CLI::App& command, RunArguments& in) {
  RunOptions& o = in.cases.options;
  command.add_option("--shard", in.cases.shard,
                     "I/N: every N-th input from the I-th on, for job arrays; join with merge");
  command
      .add_option("--devices", in.devices,
                  "Spread the matrices over these CUDA devices: all, or 0,2")
      ->type_name(kListType)
      ->excludes("--device");
  command
      .add_option("--gpus", o.cases.gpus,
                  "Divide each product among this many GPUs, with NCCL; also under mpirun, srun or "
                  "torchrun")
      ->capture_default_str();
  in.split_option = command
                        .add_option("--split", in.split,
                                    std::string("How --gpus divides the product: ") + kSplitNames)
                        ->capture_default_str();
}

}  // namespace

void add_run(CLI::App& app, ExitCode& exit_code) {
  auto in = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand(
      "run", "Measure kernels on matrices, verify each result, and compare with the baselines");
  RunOptions& o = in->cases.options;
  add_case_options(*command, in->cases);
  command->add_flag("--no-baselines", in->no_baselines,
                    "Do not add the vendor baselines that speed-ups need");
  add_outputs(*command, *in);
  add_table_options(*command, in->table);
  command
      ->add_option("--calls-curve", in->calls_curve,
                   "Measure preparation and calls together, for each of these numbers of calls: "
                   "1,10,100 or 1:1000:x10; calls_us of --json and --jsonl")
      ->type_name(kListType);
  command->add_option(
      "--a-memory", in->a_memory,
      "Where A lies before it is prepared: host, from where a copy to the GPU counts, "
      "or cuda for kernels of the GPU; default: host");
  command->add_flag("--repeat-check", o.protocol.repeat_check,
                    "Verify ten launches, and say whether their results agree to the bit");
  add_folder_option(
      *command, "--save-failing", o.protocol.save_failing,
      "Folder to which every wrong case writes A, B, its result and the expected one");
  add_folder_option(*command, "--cache", o.protocol.cache,
                    "Folder that keeps for later runs what auto?tune found, the rates that auto "
                    "predicts with, and row orders; default: nothing is kept");
  add_resuming(*command, *in);
  command->add_flag("--isolate", o.protocol.isolate,
                    "Run each case in a process of its own, as cases of plug-ins always do");
  command->add_flag("--interleave", o.protocol.interleave,
                    "Measure the kernels of a matrix in turns, in an order that --seed decides, so "
                    "that drifting clocks touch all of them alike");
  in->timeout = command
                    ->add_option("--timeout", o.protocol.timeout_s,
                                 "Seconds until a case in its own process is killed (--isolate, "
                                 "plug-ins)")
                    ->capture_default_str()
                    ->check(require_positive);
  add_dividing(*command, *in);
  add_sampling_options(*command, in->cases);
  command->callback([in, command, &exit_code] { exit_code = run(*in, config_file(*command)); });
}

}  // namespace spmmbench
