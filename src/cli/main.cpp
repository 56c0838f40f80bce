#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "run/context.hpp"

namespace spmmbench {
namespace {

// On one line, with the command whose help would have helped.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<const CLI::App*> given = app.get_subcommands(nullptr);
  std::vector<std::string> names;
  std::string help = "spmmbench";
  for (const CLI::App* command : given) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
    if (command->parsed()) help += " " + command->get_name();
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && help == "spmmbench")
    return fmt::format("expected a subcommand: {}", fmt::join(names, ", "));
  return fmt::format("{} (see {} --help)", error.what(), help);
}

}  // namespace
}  // namespace spmmbench

int main(int argc, char** argv) {
  using namespace spmmbench;
  CLI::App app{"Which sparse x dense product is fastest for this matrix and this GPU?",
               "spmmbench"};
  app.require_subcommand(1);
  app.set_version_flag("--version", tool_version());
  ExitCode exit_code = ExitCode::ok;
  add_run(app, exit_code);
  add_profile(app, exit_code);
  add_list(app, exit_code);
  add_inspect(app, exit_code);
  add_convert(app, exit_code);
  add_generate(app, exit_code);
  add_compare(app, exit_code);
  add_merge(app, exit_code);
  add_worker(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    fmt::print(stderr, "spmmbench: {}\n", usage_error(app, error));
    return static_cast<int>(ExitCode::usage);
  } catch (const Error& error) {
    fmt::print(stderr, "spmmbench: {}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "spmmbench: {}\n", error.what());
    return static_cast<int>(ExitCode::some_failed);
  }
  return static_cast<int>(exit_code);
}
