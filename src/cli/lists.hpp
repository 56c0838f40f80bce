#pragma once
// Lists, ranges and numbers as they are typed on the command line.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "spmmbench/spec.hpp"

namespace spmmbench {

// What --help calls the value of an option that takes one text of several items, with commas.
inline constexpr const char* kListType = "LIST";

// Splits at commas. Throws Error that names `flag` for an empty item.
std::vector<std::string> split_list(std::string_view text, std::string_view flag);

// "fp32, tf32, fp16, bf16" for kPrecisions: the names of all values, for help texts.
template <class Values>
std::string names_of(const Values& values) {
  std::string names;
  for (const auto value : values) {
    if (!names.empty()) names += ", ";
    names += to_string(value);
  }
  return names;
}

// `NAME?key=value,NAME` of --reorder: reorderings that exist, with options that they have. Throws
// Error.
std::vector<Spec> parse_reorderings(std::string_view list);

// "128", "32,64", "32:512:x2" (times 2), "32:128:32" (plus 32), or a mix. Throws Error naming
// `flag`; values >= 1.
std::vector<std::int64_t> parse_range_list(std::string_view text, std::string_view flag);

// An option that takes one comma-separated list, may be given again, and leaves the argument that
// follows alone: `-k a,b PATH`.
CLI::Option* add_list_option(CLI::App& command, const std::string& name,
                             std::vector<std::string>& items, const std::string& help);

// A file to write. An empty name, of a variable that is not set, would write nothing; a name like
// an option's is one whose file was forgotten.
CLI::Option* add_output_option(CLI::App& command, const std::string& name, std::string& path,
                               const std::string& help);

// The same for a folder, which is made where there is none; `-` is no folder.
CLI::Option* add_folder_option(CLI::App& command, const std::string& name, std::string& path,
                               const std::string& help);

// --seed, which CLI11 alone would read as 2^64 - 1 of "-1" and of numbers that are too large.
void add_seed_option(CLI::App& command, std::uint64_t& seed, const std::string& help);

// Refuses an empty value, of a variable that is not set, for every option and argument of the
// command: most would take it for one that is not given.
void refuse_empty_values(CLI::App& command);

// For CLI11's check(): accepts an integer from 0 to `most`. CLI11 alone does not tell what exceeds
// 64 bits.
CLI::Validator integer_up_to(std::uint64_t most);

// For CLI11's check(): what is wrong with an option's text, or nothing.
std::string require_positive(const std::string& text);
std::string require_not_negative(const std::string& text);

}  // namespace spmmbench
