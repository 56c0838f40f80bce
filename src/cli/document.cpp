// The manual page and the completion for bash, which the build makes from the program's options.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "io/output.hpp"

namespace spmmbench {
namespace {

std::vector<CLI::App*> commands_of(const CLI::App& app) {
  std::vector<CLI::App*> commands;
  for (CLI::App* command : const_cast<CLI::App&>(app).get_subcommands(nullptr))
    if (!command->get_group().empty()) commands.push_back(command);
  return commands;
}

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) options.push_back(option);
  return options;
}

std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

// Escapes text for roff: backslashes and dashes are printed as they are, and no line begins with a
// control character.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else out += c;
  }
  return out;
}

void add_man_options(const CLI::App& app, std::string& page) {
  for (const CLI::Option* option : options_of(app)) {
    const std::vector<std::string> flags = flags_of(*option);
    const std::string type = option->get_expected_max() == 0 ? "" : option->get_type_name();
    page += fmt::format(".TP\n.B {}{}\n{}", roff(fmt::format("{}", fmt::join(flags, ", "))),
                        flags.empty()  ? option->get_name()
                        : type.empty() ? ""
                                       : " " + type,
                        roff(option->get_description()));
    if (!option->get_default_str().empty())
      page += fmt::format(" [{}]", roff(option->get_default_str()));
    page += '\n';
  }
}

std::string man_page(const CLI::App& app) {
  std::string page = fmt::format(
      ".TH SPMMBENCH 1 \"\" \"spmmbench\"\n.ad l\n.SH NAME\nspmmbench \\- {}\n"
      ".SH SYNOPSIS\n.B spmmbench\n.I command\n[\\fIoption\\fR ...]\n.SH OPTIONS\n",
      roff(app.get_description()));
  add_man_options(app, page);
  page += ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of(app)) {
    page += fmt::format(".SS {}\n{}\n", command->get_name(), roff(command->get_description()));
    add_man_options(*command, page);
    page += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(command->get_footer()));
  }
  return page;
}

std::string bash_completion(const CLI::App& app) {
  std::vector<std::string> names, cases;
  for (const CLI::App* command : commands_of(app)) {
    names.push_back(command->get_name());
    std::vector<std::string> words;
    for (const CLI::Option* option : options_of(*command))
      for (const std::string& flag : flags_of(*option))
        if (flag.starts_with("--")) words.push_back(flag);
    cases.push_back(
        fmt::format("    {}) words='{}' ;;\n", command->get_name(), fmt::join(words, " ")));
  }
  return fmt::format(
      "# bash completion of spmmbench; made from its options when it was built\n"
      "_spmmbench() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} words=\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W '{} --help --version' -- \"$current\"))\n"
      "    return\n"
      "  fi\n"
      "  [[ $current == -* ]] || return\n"
      "  case ${{COMP_WORDS[1]}} in\n{}  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "}}\n"
      "complete -o default -F _spmmbench spmmbench\n",
      fmt::join(names, " "), fmt::join(cases, ""));
}

}  // namespace

void add_document(CLI::App& app, ExitCode&) {
  auto what = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("document", "What the build makes of the options");
  command->group("");  // the build calls it; not shown in --help
  command->add_option("WHAT", *what, "man or bash")->required()->check(one_of({"man", "bash"}));
  command->callback(
      [&app, what] { print("{}", *what == "man" ? man_page(app) : bash_completion(app)); });
}

}  // namespace spmmbench
