#include "cli/program.hpp"

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/config_file.hpp"
#include "cli/help.hpp"
#include "cli/lists.hpp"
#include "io/output.hpp"
#include "run/context.hpp"

namespace spmmbench {
namespace {

const CLI::Option* option_named(const CLI::App& app, const CLI::App& command,
                                const std::string& name) {
  const CLI::Option* own = command.get_option_no_throw(name);
  return own != nullptr ? own : app.get_option_no_throw(name);
}

// The words behind the program's name, last first, as CLI11 takes them. It would read a PATH
// `[a,b]` as a list of two names, so that such a word gets "./" before it unless it is an option's
// value. For `--NAME=` it would take the word that follows: such an option is refused here.
std::vector<std::string> words_of(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> words;
  const CLI::App* command = &app;
  bool only_paths = false;  // behind --
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const CLI::Option* before =
        i > 1 && !only_paths ? option_named(app, *command, argv[i - 1]) : nullptr;
    const bool is_value = before != nullptr && before->get_items_expected_min() > 0;
    only_paths |= !is_value && word == "--";
    if (!is_value && !only_paths && word.starts_with("--") && word.ends_with('='))
      if (const std::string name = word.substr(0, word.size() - 1);
          option_named(app, *command, name) != nullptr)
        throw Error(fmt::format("{}: expected a value, got an empty one", name));
    const bool is_list = !is_value && word.starts_with('[') && word.ends_with(']');
    words.insert(words.begin(), is_list ? "./" + word : word);
    for (const CLI::App* one : app.get_subcommands(nullptr))
      if (command == &app && one->get_name() == word) command = one;
  }
  return words;
}

}  // namespace

ExitCode run_program(int argc, char** argv) {
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
  add_check_plugin(app, exit_code);
  add_worker(app, exit_code);
  add_document(app, exit_code);
  app.set_config(
         "--config", "",
         "Options from a TOML file, in a section named like the command: [run], [show], ...")
      ->type_name("FILE")
      ->check([](const std::string& path) {  // an empty value is refused below
        if (path.empty() || std::filesystem::is_regular_file(path)) return std::string();
        const bool other = std::filesystem::exists(path);
        return fmt::format("{}: {}", path, other ? "expected a plain file" : "no such file");
      });
  app.allow_config_extras(CLI::config_extras_mode::error);
  const auto config = std::make_shared<ConfigFile>(app);
  app.config_formatter(config);
  refuse_empty_values(app);
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    refuse_empty_values(*command);
    command->fallthrough();  // --config FILE is the program's own option
  }
  add_footers(app);
  try {
    app.parse(words_of(app, argc, argv));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0)
      throw Error(config->with_place(usage_error(app, error, {argv + 1, argv + argc})));
    std::ostringstream text;  // of --help or --version
    app.exit(error, text, text);
    write_output(text.str());
  } catch (const Error& error) {
    const std::string placed = config->with_place(error.what());
    if (placed == error.what()) throw;  // as what it is
    throw Error(placed, error.code());
  }
  flush_output();
  return exit_code;
}

}  // namespace spmmbench
