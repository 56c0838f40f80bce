#include "cli/help.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <stdexcept>

#include "spmmbench/error.hpp"
#include "spmmbench/suggest.hpp"

namespace spmmbench {
namespace {

struct Footer {
  std::vector<const char*> examples;
  std::vector<ExitCode> codes;
  const char* config = "";  // an example of what --config reads
};

// Each example runs as it is written, in a clone and after the examples above it.
const std::map<std::string, Footer>& footers() {
  using enum ExitCode;
  static const std::map<std::string, Footer> all = {
      {"run",
       {{"spmmbench run data/fem2d_plate.mtx.gz",
         "spmmbench run data -n 64:512:x2 --precision fp16,fp32 --json out.json",
         "spmmbench run 'gen:rmat?scale=12&edge_factor=16' -k 'c*' -x 'cublas*' --tag night=1",
         "spmmbench run data --reorder none,rcm --isolate --timeout 60 --json out.json --resume"},
        {ok, usage, wrong_result, some_failed, not_comparable, interrupted},
        "  [run]\n  n = \"64:512:x2\"\n  kernel = [\"rsh\", \"async*\"]\n"}},
      {"profile",
       {{"spmmbench profile data/fem2d_plate.mtx.gz -k 'c*'"},
        {ok, usage, wrong_result, some_failed, interrupted}}},
      {"show",
       {{"spmmbench show results/h200/irregular-fp16-n128.json -m 'web-*'",
         "spmmbench show results/h200/irregular-fp16-n128.json -k rsh -n 128 --sort bound:desc",
         "spmmbench show results/h200/irregular-fp16-n128.json --columns kernel,hot,cold_q3_us",
         "spmmbench show results/h200/irregular-fp16-n128.json -k auto --format markdown",
         "spmmbench show --legend"},
        {ok, usage}}},
      {"list",
       {{"spmmbench list", "spmmbench list kernels --json", "spmmbench list schema"}, {ok, usage}}},
      {"inspect",
       {{"spmmbench inspect data/fem3d_elasticity.mtx.gz --reorder none,rsh",
         "spmmbench inspect 'gen:powerlaw?rows=3000' --json"},
        {ok, usage}}},
      {"convert",
       {{"spmmbench convert data/fem2d_plate.mtx.gz plate.csr",
         "spmmbench convert 'gen:uniform?rows=64&cols=64&density=0.5' weights.npy",
         "spmmbench convert weights.npy pruned.mtx --prune block:8x8:0.5"},
        {ok, usage}}},
      {"generate",
       {{"spmmbench generate 'rmat?scale=12&edge_factor=8' graph.mtx",
         "spmmbench generate 'fem2d?vertices=900' plate.mtx.gz"},
        {ok, usage}}},
      {"check-plugin",
       {{"spmmbench check-plugin ./libmine.so"}, {ok, usage, wrong_result, some_failed}}},
      {"compare",
       {{"spmmbench run data -k cpu_csr --json before.json",
         "spmmbench run data -k cpu_csr --json after.json",
         "spmmbench compare before.json after.json --all",
         "spmmbench compare before.json after.json --json -"},
        {ok, usage, regression, not_comparable, not_able_to_tell, interrupted}}},
      {"merge",
       {{"spmmbench run data --shard 1/2 -k cpu_csr --json part1.json",
         "spmmbench run data --shard 2/2 -k cpu_csr --json part2.json",
         "spmmbench merge whole.json part1.json part2.json"},
        {ok, usage, some_failed, not_comparable, interrupted}}},
  };
  return all;
}

const char* meaning(ExitCode code) {
  switch (code) {
    case ExitCode::ok: return "all that was asked for was done, or skipped with a reason";
    case ExitCode::usage: return "bad arguments, unreadable input, unwritable output";
    case ExitCode::wrong_result: return "a result was wrong";
    case ExitCode::regression: return "a case or kernel is slower, newly wrong or lost";
    case ExitCode::some_failed:
      return "cases failed or timed out, all were skipped, or a shard is missing";
    case ExitCode::not_comparable: return "runs that cannot stand in one comparison or document";
    case ExitCode::not_able_to_tell: return "nothing found, and too much could have gone unseen";
    case ExitCode::interrupted: return "interrupted; what was measured is kept";
  }
  return "";
}

std::string text_of(const std::string& command, const Footer& footer) {
  std::string text = "Examples:\n";
  for (const char* example : footer.examples) text += fmt::format("  {}\n", example);
  text += fmt::format(
      "\nOptions in a file: --config FILE, TOML with the long names in a section [{}]\n{}"
      "\nExit codes:\n",
      command, footer.config);
  for (const ExitCode code : footer.codes)
    text += fmt::format("  {:<4} {}\n", static_cast<int>(code), meaning(code));
  text.pop_back();
  return text;
}

// What other benchmarks call what this one has under another name, or does by itself.
std::string instead_of(const std::string& flag) {
  if (flag.starts_with("-N")) return "; -n sets the columns of B";
  if (flag == "--warmup" || flag == "--warm-up") return "; each case warms up by itself";
  if (flag == "--iterations" || flag == "--iters" || flag == "--repeats" || flag == "--reps")
    return "; --min-samples and --max-samples limit how often a case is timed";
  return {};
}

// A value that is no number, of which CLI11 says "Could not convert: --device = x".
std::string conversion_error(const CLI::App& command, const std::string& message) {
  const std::string_view said = "Could not convert: ";
  const std::size_t equals = message.find(" = ");
  if (!message.starts_with(said) || equals == std::string::npos) return message;
  const std::string name = message.substr(said.size(), equals - said.size());
  const CLI::Option* option = command.get_option_no_throw(name);
  const bool whole = option != nullptr && option->get_type_name().find("INT") != std::string::npos;
  return fmt::format("{}: expected {}, got '{}'", name, whole ? "an integer" : "a number",
                     message.substr(equals + 3));
}

// An option without its value or with too many, of which CLI11 says "--n: At Most 1 required but
// received 2" and "--json: 1 required TEXT missing".
std::string mismatch_error(const std::string& message) {
  const std::string name = message.substr(0, message.find(':'));
  if (message.ends_with(" missing")) return name + ": expected a value";
  const std::string_view once = ": At Most 1 required but received ";
  const std::size_t at = message.find(once);
  if (at == std::string::npos) return message;
  return fmt::format("{}: given {} times, expected once", name, message.substr(at + once.size()));
}

}  // namespace

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> all;
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string> names = names_of(*option);
    all.insert(all.end(), names.begin(), names.end());
  }
  return all;
}

void add_footers(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_group().empty()) continue;
    const auto it = footers().find(command->get_name());
    if (it == footers().end())
      throw std::logic_error(command->get_name() + ": expected examples for its --help");
    command->footer(text_of(it->first, it->second));
  }
}

std::string usage_error(const CLI::App& app, const CLI::ParseError& error,
                        const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  const CLI::App* given = nullptr;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
    if (command->parsed()) given = command;
  }
  if (given == nullptr && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    std::string list = fmt::format("expected a subcommand: {}", fmt::join(names, ", "));
    if (arguments.empty()) return list;
    const std::string meant = closest(arguments.front(), names);
    return fmt::format("{} (given: {}{})", list, arguments.front(),
                       meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
  }
  std::string message =
      dynamic_cast<const CLI::ConfigError*>(&error) != nullptr
          ? fmt::format("{}: {}", app.get_config_ptr()->as<std::string>(), error.what())
          : error.what();
  if (given != nullptr && dynamic_cast<const CLI::ConversionError*>(&error) != nullptr)
    message = conversion_error(*given, message);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
    message = mismatch_error(message);
  if (given != nullptr && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    for (const std::string& extra : app.remaining(true))
      if (extra.starts_with('-')) {
        const std::string flag = extra.substr(0, extra.find('='));
        const std::string instead = instead_of(flag);
        const bool one_letter = flag.size() == 2;  // any other is as close
        if (!instead.empty() || one_letter) message += instead;
        else message += did_you_mean(flag, option_names(*given));
      }
  return fmt::format("{} (see spmmbench{}{} --help)", message, given == nullptr ? "" : " ",
                     given == nullptr ? "" : given->get_name());
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  return CLI::Validator(
      [words](std::string& text) {
        for (const std::string& word : words)
          if (text == word) return std::string();
        return fmt::format("expected one of {}, got '{}'{}", fmt::join(words, ", "), text,
                           did_you_mean(text, words));
      },
      "");
}

}  // namespace spmmbench
