#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "cli/case_options.hpp"
#include "cli/commands.hpp"
#include "io/output.hpp"
#include "plugin/described.hpp"
#include "plugin/plugin.hpp"
#include "run/runner.hpp"
#include "run/work.hpp"

namespace spmmbench {

void add_worker(CLI::App& app, ExitCode& exit_code) {
  auto path = std::make_shared<std::string>("/dev/stdin");
  CLI::App* command = app.add_subcommand("worker", "What the program starts its children with");
  command->group("");  // the program calls it; not shown in --help
  command->add_option("FILE", *path, "Description of the work, as JSON");
  auto json = std::make_shared<std::string>();
  command->add_option("--json", *json, "Write the result document instead of lines of JSON");
  auto library = std::make_shared<std::string>();
  command->add_option("--load", *library, "Only load this plug-in");
  command->callback([path, json, library, &exit_code] {
    if (!library->empty()) {
      fmt::print("{}{}\n", kLoaded, describe_kernels(load_plugin(*library)));
      return;
    }
    claim_standard_output();
    std::ifstream file(*path);
    std::ostringstream text;
    if (!file || !(text << file.rdbuf()))
      throw Error(fmt::format("{}: expected a description of work as JSON", *path));
    Work work = read_work(text.str());
    if (const Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC)); nothing.get() >= 0)
      dup2(nothing.get(), STDIN_FILENO);  // the description holds the nonce
    RunOptions options;
    options.cases = std::move(work.cases);
    options.protocol = std::move(work.protocol);
    options.outputs.line_prefix = options.protocol.nonce;
    options.outputs.quiet = true;
    options.outputs.json = *json;
    options.outputs.jsonl = json->empty() && !options.protocol.one_launch;
    exit_code = run_benchmark(options, process_arguments());
  });
}

}  // namespace spmmbench
