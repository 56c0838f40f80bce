#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/lists.hpp"
#include "core/steady_seconds.hpp"
#include "gpu/backend.hpp"
#include "io/output.hpp"
#include "library/open_device.hpp"
#include "plugin/plugin.hpp"
#include "plugin/plugin_check.hpp"
#include "process/child.hpp"
#include "spmmbench/spec.hpp"

namespace spmmbench {
namespace {

constexpr double kMostSeconds = 120;  // for one kernel: its cases take about one

bool is_named(const PluginPattern& pattern, const Kernel& kernel) {
  const std::string& name = kernel.info().name;
  return glob_match(pattern.kernels, name.substr(name.find(':') + 1));
}

// In this process, which a fault of the kernel may end. False where something is wrong.
bool check_here(const Kernel& kernel) {
  const KernelInfo& info = kernel.info();
  if (info.device == DeviceKind::cuda && probe_cuda().devices.empty()) {
    print("skipped {}: {}\n", info.name, probe_cuda().reason);
    return true;
  }
  const std::unique_ptr<Device> device = open_device(info.device);
  const PluginCheck check = check_plugin_kernel(kernel, *device);
  if (!check.failures.empty()) {
    print("FAILED  {}: {} cases passed\n", info.name, check.passed);
    for (const std::string& failure : check.failures) print("  {}\n", failure);
  } else if (check.passed == 0) {
    print("skipped {}: every case was: {}\n", info.name, check.reason);
  } else {
    print("ok      {}: {} cases passed{}\n", info.name, check.passed,
          check.skipped == 0 ? "" : fmt::format(", {} skipped: {}", check.skipped, check.reason));
  }
  return check.failures.empty();
}

// In a child process.
bool check_apart(const std::string& path, const Kernel& kernel) {
  const std::string& name = kernel.info().name;
  Child child(kThisProgram, {"check-plugin", "--here", path + name.substr(name.find(':'))});
  const double deadline = steady_seconds() + kMostSeconds;
  bool told = false;
  const auto pass_on = [&told](const std::string& line) {
    told = true;
    print("{}\n", line);
  };
  while (child.pump(pass_on)) {
    if (steady_seconds() > deadline) {
      child.kill();
      print("FAILED  {}: took more than {:g} s\n", name, kMostSeconds);
      return false;
    }
    pause_briefly();
  }
  const auto wrong = static_cast<int>(ExitCode::wrong_result);
  const bool ended_well = told && child.exited() && child.exit_code() == 0;
  if (!ended_well && !(told && child.exit_code() == wrong))
    print("FAILED  {}: {}\n", name, child.ending());
  return ended_well;
}

}  // namespace

void add_check_plugin(CLI::App& app, ExitCode& exit_code) {
  struct Arguments {
    std::vector<std::string> libraries;
    std::string here;
  };
  auto in = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "check-plugin", "Try the kernels of plug-ins on small matrices: what breaks plugin.h?");
  command->add_option("LIBRARY", in->libraries, "./libmine.so, or ./libmine.so:NAME_GLOB");
  command->add_option("--here", in->here, "In this process")->group("");
  command->callback([in, &exit_code] {
    const bool here = !in->here.empty();
    if (here) {
      in->libraries = {in->here};
      claim_standard_output();  // what the plug-in prints is none of the outcome
    }
    if (in->libraries.empty()) throw Error("expected the LIBRARY of a plug-in");
    for (const std::string& library : in->libraries) {
      const PluginPattern pattern = parse_plugin_pattern(library);
      bool found = false;
      for (const Kernel* kernel :
           here ? load_plugin(pattern.path) : describe_plugin(pattern.path, kMostSeconds)) {
        if (!is_named(pattern, *kernel)) continue;
        found = true;
        if (!(here ? check_here(*kernel) : check_apart(pattern.path, *kernel)))
          exit_code = ExitCode::wrong_result;
      }
      if (!found) throw Error(fmt::format("{}: no kernel matches", library));
    }
  });
}

}  // namespace spmmbench
