#pragma once
// One subcommand = one file, which adds its options to the app. Its callback throws Error, or
// returns through `exit_code` when the outcome is not an exception (a wrong result, a regression).

#include <CLI/CLI.hpp>

#include "spmmbench/error.hpp"

namespace spmmbench {

void add_run(CLI::App& app, ExitCode& exit_code);
void add_profile(CLI::App& app, ExitCode& exit_code);
void add_show(CLI::App& app, ExitCode& exit_code);
void add_list(CLI::App& app, ExitCode& exit_code);
void add_inspect(CLI::App& app, ExitCode& exit_code);
void add_convert(CLI::App& app, ExitCode& exit_code);
void add_generate(CLI::App& app, ExitCode& exit_code);
void add_compare(CLI::App& app, ExitCode& exit_code);
void add_merge(CLI::App& app, ExitCode& exit_code);
void add_check_plugin(CLI::App& app, ExitCode& exit_code);
void add_worker(CLI::App& app, ExitCode& exit_code);
void add_document(CLI::App& app, ExitCode& exit_code);

}  // namespace spmmbench
