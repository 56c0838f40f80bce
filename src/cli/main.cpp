#include <fmt/format.h>

#include <cstdio>

#include "cli/commands.hpp"
#include "run/context.hpp"

int main(int argc, char** argv) {
  using namespace spmmbench;
  CLI::App app{"Which sparse x dense product is fastest for this matrix and this GPU?",
               "spmmbench"};
  app.require_subcommand(1);
  app.set_version_flag("--version", tool_version());
  ExitCode exit_code = ExitCode::ok;
  add_run(app, exit_code);
  add_list(app, exit_code);
  add_inspect(app, exit_code);
  add_convert(app, exit_code);
  add_generate(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::usage);
  } catch (const Error& error) {
    fmt::print(stderr, "spmmbench: {}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "spmmbench: {}\n", error.what());
    return static_cast<int>(ExitCode::some_failed);
  }
  return static_cast<int>(exit_code);
}
