#include "run/arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

using Arguments = std::vector<std::string>;

void add(Arguments& arguments, const char* flag, const std::string& value) {
  arguments.insert(arguments.end(), {flag, value});
}

std::string quoted(const std::string& text) {
  if (!text.empty() &&
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "_-./:=,@%+") == std::string::npos)
    return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// How A and B come to be, whatever is measured on them.
void add_data(Arguments& arguments, const RunOptions& options) {
  add(arguments, "--seed", std::to_string(options.load.seed));
  if (!options.load.prune.empty()) add(arguments, "--prune", options.load.prune);
  if (!options.b_file.empty()) add(arguments, "--b", options.b_file);
  if (!options.load.dims) return;
  add(arguments, "--dims", std::to_string(options.load.dims->first));
  arguments.push_back(std::to_string(options.load.dims->second));
  if (options.b_dims) arguments.push_back(std::to_string(options.b_dims->second));
}

}  // namespace

std::vector<std::string> case_arguments(const RunOptions& options, const ResultRow& row) {
  Arguments arguments = {row.matrix.source};
  add(arguments, "-n", std::to_string(row.n));
  add(arguments, "-k", row.kernel);
  add(arguments, "--precision", row.precision);
  if (row.c_type != "fp32") add(arguments, "--c-type", row.c_type);
  if (row.layout != "row") add(arguments, "--b-layout", row.layout);
  if (row.reorder != "none") add(arguments, "--reorder", row.reorder);
  add_data(arguments, options);
  return arguments;
}

std::vector<std::string> child_arguments(const RunOptions& options, int device) {
  Arguments arguments;
  add(arguments, "--device", std::to_string(device));
  add(arguments, "--noise", fmt::format("{}", options.limits.noise));
  add(arguments, "--min-samples", std::to_string(options.limits.min_samples));
  add(arguments, "--max-samples", std::to_string(options.limits.max_samples));
  add(arguments, "--max-seconds", fmt::format("{}", options.limits.max_seconds));
  arguments.insert(arguments.end(), {"--jsonl", "--quiet"});
  return arguments;
}

std::vector<std::string> input_arguments(const RunOptions& options, const std::string& input) {
  Arguments arguments = {input};
  add(arguments, "-n", fmt::format("{}", fmt::join(options.ns, ",")));
  for (const std::string& kernel : options.kernels) add(arguments, "-k", kernel);
  for (const std::string& glob : options.exclude) add(arguments, "-x", glob);
  std::vector<std::string_view> precisions;
  for (const Precision precision : options.precisions) precisions.push_back(to_string(precision));
  add(arguments, "--precision", fmt::format("{}", fmt::join(precisions, ",")));
  add(arguments, "--c-type", std::string(to_string(options.c_type)));
  add(arguments, "--b-layout", options.layout == Layout::row_major ? "row" : "col");
  Arguments orders;
  for (const Spec& reorder : options.reorderings) orders.push_back(reorder.to_string());
  add(arguments, "--reorder", fmt::format("{}", fmt::join(orders, ",")));
  add_data(arguments, options);
  if (!options.baselines) arguments.push_back("--no-baselines");
  if (options.isolate) {
    arguments.push_back("--isolate");
    add(arguments, "--timeout", fmt::format("{}", options.timeout_s));
  }
  return arguments;
}

std::string shell_command(const std::vector<std::string>& arguments) {
  Arguments words;
  for (const std::string& argument : arguments) words.push_back(quoted(argument));
  return fmt::format("{}", fmt::join(words, " "));
}

std::vector<std::string> split_command(const std::string& command) {
  Arguments words;
  bool in_word = false, in_quotes = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (!in_quotes && c == ' ') {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c == '\'') in_quotes = !in_quotes;
    else if (!in_quotes && c == '\\' && i + 1 < command.size()) words.back() += command[++i];
    else words.back() += c;
  }
  if (in_quotes) throw Error(fmt::format("command '{}': expected a closing quote", command));
  return words;
}

}  // namespace spmmbench
