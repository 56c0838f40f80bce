#pragma once
// The text below the options of each --help, and the message for a command line that cannot be
// read.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace spmmbench {

// Examples and exit codes of every subcommand. Throws std::logic_error for one that has none.
void add_footers(CLI::App& app);

// On one line, with the name that was probably meant and the command whose --help explains it.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error,
                        const std::vector<std::string>& arguments);

// The names of an option, with their dashes.
std::vector<std::string> names_of(const CLI::Option& option);
std::vector<std::string> option_names(const CLI::App& command);

// For CLI11's check(): one of these words.
CLI::Validator one_of(const std::vector<std::string>& words);

}  // namespace spmmbench
