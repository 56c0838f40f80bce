#include <fmt/format.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "core/numbered.hpp"
#include "core/steady_seconds.hpp"
#include "gpu/backend.hpp"
#include "io/output.hpp"
#include "library/open_device.hpp"
#include "plugin/host_code_device.hpp"
#include "plugin/plugin.hpp"
#include "plugin/plugin_check.hpp"
#include "process/child.hpp"
#include "spmmbench/printable.hpp"
#include "spmmbench/spec.hpp"

namespace spmmbench {
namespace {

constexpr double kMostSeconds = 120;  // for one kernel: its cases take about one

bool is_named(const PluginPattern& pattern, const Kernel& kernel) {
  const std::string& name = kernel.info().name;
  return glob_match(pattern.kernels, name.substr(name.find(':') + 1));
}

// In this process, which a fault of the kernel may end. some_failed where nothing was checked.
ExitCode check_here(const Kernel& kernel, bool host_code) {
  const KernelInfo& info = kernel.info();
  const bool on_gpu = info.device == DeviceKind::cuda;
  const Checked checked = host_code && on_gpu ? Checked::host_code : Checked::products;
  if (on_gpu && checked == Checked::products && probe_cuda().devices.empty()) {
    print("skipped {}: {}\n", info.name, probe_cuda().reason);
    return ExitCode::some_failed;
  }
  const std::unique_ptr<Device> device =
      checked == Checked::host_code ? open_host_code_device() : open_device(info.device);
  const PluginCheck check = check_plugin_kernel(kernel, *device, checked);
  if (!check.failures.empty()) {
    print("FAILED  {}: {} passed\n", info.name, numbered(check.passed, "case"));
    for (const std::string& failure : check.failures) print("  {}\n", printable_message(failure));
    return ExitCode::wrong_result;
  }
  if (check.passed == 0) {
    print("skipped {}: every case was: {}\n", info.name, printable_message(check.reason));
    return ExitCode::some_failed;
  }
  print("ok      {}: {} {}{}\n", info.name, numbered(check.passed, "case"),
        checked == Checked::host_code ? "of its host code ended well" : "passed",
        check.skipped == 0
            ? ""
            : fmt::format(", {} skipped: {}", check.skipped, printable_message(check.reason)));
  return ExitCode::ok;
}

// The same in a child process.
ExitCode check_apart(const std::string& path, const Kernel& kernel, bool host_code) {
  const std::string& name = kernel.info().name;
  std::vector<std::string> words = {"check-plugin", "--here", path + name.substr(name.find(':'))};
  if (host_code) words.emplace_back("--host-code");
  Child child(kThisProgram, words);
  const double deadline = steady_seconds() + kMostSeconds;
  std::vector<std::string> lines;
  const auto keep = [&lines](const std::string& line) { lines.push_back(line); };
  const auto show = [host_code](const std::string& line) {  // the report of a sanitizer
    if (host_code) say("{}\n", line);
  };
  while (child.pump(keep, show)) {
    if (steady_seconds() > deadline) {
      child.kill();
      print("FAILED  {}: took more than {:g} s\n", name, kMostSeconds);
      return ExitCode::wrong_result;
    }
    pause_briefly();
  }
  const auto ended_with = [&](ExitCode code) {
    return !lines.empty() && child.exited() && child.exit_code() == static_cast<int>(code);
  };
  ExitCode outcome = ExitCode::wrong_result;
  for (const ExitCode code : {ExitCode::ok, ExitCode::some_failed})
    if (ended_with(code)) outcome = code;
  if (outcome == ExitCode::wrong_result && !ended_with(outcome))
    lines = {fmt::format("FAILED  {}: {}", name, child.ending())};
  for (const std::string& line : lines) print("{}\n", printable_message(line));
  return outcome;
}

}  // namespace

void add_check_plugin(CLI::App& app, ExitCode& exit_code) {
  struct Arguments {
    std::vector<std::string> libraries;
    std::string here;
    bool host_code = false;
  };
  auto in = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "check-plugin", "Try the kernels of plug-ins on small matrices, and say what is wrong");
  command->add_option("LIBRARY", in->libraries, "./libmine.so, or ./libmine.so:NAME_GLOB");
  command->add_flag("--host-code", in->host_code,
                    "Check all but what kernels compute: for libraries that are linked with "
                    "spmmbench/cuda_on_host.c in place of the CUDA runtime");
  command->add_option("--here", in->here, "In this process")->group("");
  command->callback([in, &exit_code] {
    const bool here = !in->here.empty();
    if (here) {
      in->libraries = {in->here};
      claim_standard_output();  // what the plug-in prints is none of the outcome
    }
    if (in->libraries.empty()) throw Error("expected the LIBRARY of a plug-in");
    std::set<ExitCode> outcomes;
    for (const std::string& library : in->libraries) {
      const PluginPattern pattern = parse_plugin_pattern(library);
      bool found = false;
      for (const Kernel* kernel :
           here ? load_plugin(pattern.path) : describe_plugin(pattern.path, kMostSeconds)) {
        if (!is_named(pattern, *kernel)) continue;
        found = true;
        outcomes.insert(here ? check_here(*kernel, in->host_code)
                             : check_apart(pattern.path, *kernel, in->host_code));
      }
      if (!found) throw Error(fmt::format("{}: no kernel matches", library));
    }
    if (outcomes.contains(ExitCode::wrong_result)) exit_code = ExitCode::wrong_result;
    else if (!outcomes.contains(ExitCode::ok)) exit_code = ExitCode::some_failed;
  });
}

}  // namespace spmmbench
