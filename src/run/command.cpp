#include "run/command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "io/input.hpp"
#include "plugin/plugin.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

// A name that begins with a dash would be taken for an option.
std::string as_argument(const std::string& path) {
  return path.starts_with('-') ? "./" + path : path;
}

}  // namespace

std::string shell_word(const std::string& bytes) {
  if (!bytes.empty() &&
      bytes.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "_-./:=,@%+") == std::string::npos)
    return bytes;
  const bool shown = printable_message(bytes) == bytes;
  const std::string text = shown ? bytes : to_printable(bytes);
  std::string out = shown ? "'" : "$'";
  for (const char c : text)
    if (c != '\'') out += c;
    else out += shown ? "'\\''" : "\\'";
  return out + "'";
}

std::string case_arguments(const Cases& cases, const ResultRow& row) {
  std::vector<std::string> words = {shell_word(as_argument(from_printable(row.matrix.source)))};
  const auto add = [&](const char* flag, const std::string& value) {
    words.emplace_back(flag);
    words.push_back(shell_word(value));
  };
  add("-n", std::to_string(row.n));
  add("-k", kernel_argument(row.kernel));
  add("--precision", row.precision);
  if (row.c_type != "fp32" && row.c_type != "fp64") add("--c-type", row.c_type);
  if (row.layout != "row") add("--b-layout", row.layout);
  if (row.reorder != "none") add("--reorder", row.reorder);
  if (row.alpha != 1) add("--alpha", fmt::format("{}", row.alpha));
  if (row.beta != 0) add("--beta", fmt::format("{}", row.beta));
  if (row.batch != 1) add("--batch", std::to_string(row.batch));
  if (row.split) {
    add("--gpus", std::to_string(row.split->gpus));
    add("--split", row.split->name);
  }
  add("--seed", std::to_string(cases.load.seed));
  if (!cases.load.prune.empty()) add("--prune", cases.load.prune);
  if (cases.load.transpose) words.emplace_back("--transpose");
  if (!cases.b_file.empty()) add("--b", as_argument(cases.b_file));
  const bool headerless =
      is_headerless(from_printable(row.matrix.source)) || is_headerless(cases.b_file);
  if (headerless && cases.load.bin_type != ElementType::f32)
    add("--bin-type", std::string(to_string(cases.load.bin_type)));
  if (headerless && cases.load.dims) {
    add("--dims", std::to_string(cases.load.dims->first));
    words.push_back(std::to_string(cases.load.dims->second));
    if (cases.b_dims) words.push_back(std::to_string(cases.b_dims->second));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

std::string case_command(const Cases& cases, const ResultRow& row) {
  return fmt::format("spmmbench run {} --no-baselines", case_arguments(cases, row));
}

}  // namespace spmmbench
