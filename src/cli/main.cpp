#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "run/context.hpp"

int main(int argc, char** argv) {
  using namespace spmmbench;
  CLI::App app{"Which sparse x dense product is fastest for this matrix and this GPU?",
               "spmmbench"};
  app.require_subcommand(1);
  app.set_version_flag("--version", tool_version());
  ExitCode exit_code = ExitCode::ok;
  add_run(app, exit_code);
  add_profile(app, exit_code);
  add_show(app, exit_code);
  add_list(app, exit_code);
  add_inspect(app, exit_code);
  add_convert(app, exit_code);
  add_generate(app, exit_code);
  add_compare(app, exit_code);
  add_merge(app, exit_code);
  add_worker(app, exit_code);
  app.set_config("--config", "", "Options from a TOML file: a section for the command, [run]");
  app.allow_config_extras(CLI::config_extras_mode::error);
  add_footers(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    fmt::print(stderr, "spmmbench: {}\n", usage_error(app, error, {argv + 1, argv + argc}));
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
