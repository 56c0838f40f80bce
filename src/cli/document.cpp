// The manual page and the completions for shells, which the build makes from the program's options.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "core/drop_repeats.hpp"
#include "core/this_build.hpp"
#include "io/output.hpp"
#include "spmmbench/registry.hpp"

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

bool takes_value(const CLI::Option& option) { return option.get_expected_max() != 0; }

// Escapes text for roff: backslashes and dashes are printed as they are, no line begins with a
// control character, and a list without blanks may break behind its commas.
std::string roff(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else if (c == ',' && text.find_first_of(" \n", i) != i + 1) out += ",\\:";
    else out += c;
  }
  return out;
}

void add_man_options(const CLI::App& app, std::string& page) {
  for (const CLI::Option* option : options_of(app)) {
    const std::vector<std::string> flags = flags_of(*option);
    const std::string type = takes_value(*option) ? option->get_type_name() : "";
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
      ".TH SPMMBENCH 1 \"\" \"spmmbench {}\"\n.ad l\n.nh\n.SH NAME\nspmmbench \\- {}\n"
      ".SH SYNOPSIS\n.B spmmbench\n.I command\n[\\fIoption\\fR ...]\n.SH OPTIONS\n",
      this_build::version, roff(app.get_description()));
  add_man_options(app, page);
  page += ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of(app)) {
    page += fmt::format(".SS {}\n{}\n", command->get_name(), roff(command->get_description()));
    add_man_options(*command, page);
    page += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(command->get_footer()));
  }
  return page;
}

// The names that the value of an option is made of, in a list with commas; none for other values.
std::vector<std::string> words_of(const CLI::Option& option) {
  std::vector<std::string> names;
  const std::string flag = option.get_name();
  if (flag == "--kernel" || flag == "--exclude")
    for (const Kernel* kernel : Registry<Kernel>::instance().sorted())
      names.push_back(kernel->info().name);
  if (flag == "--reorder")
    for (const Reordering* order : Registry<Reordering>::instance().sorted())
      names.push_back(order->name());
  return names;
}

std::string in_single_quotes(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

constexpr const char* kMadeHere = "made from its options when it was built";

std::string bash_completion(const CLI::App& app) {
  std::vector<std::string> names, flags_of_commands, words_of_options;
  for (const CLI::App* command : commands_of(app)) {
    names.push_back(command->get_name());
    std::vector<std::string> words;
    for (const CLI::Option* option : options_of(*command)) {
      const std::vector<std::string> flags = flags_of(*option);
      for (const std::string& flag : flags)
        if (flag.starts_with("--")) words.push_back(flag);
      if (const std::vector<std::string> values = words_of(*option); !values.empty())
        words_of_options.push_back(
            fmt::format("    {}) words='{}' ;;\n", fmt::join(flags, "|"), fmt::join(values, " ")));
    }
    flags_of_commands.push_back(
        fmt::format("    {}) words='{}' ;;\n", command->get_name(), fmt::join(words, " ")));
  }
  drop_repeats(words_of_options);
  return fmt::format(
      R"(# bash completion of spmmbench; {}
_spmmbench() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words= before=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$current"))
    return
  fi
  case ${{COMP_WORDS[COMP_CWORD - 1]}} in
{}  esac
  if [ -n "$words" ]; then
    [[ $current != *,* ]] || before=${{current%,*}},
    COMPREPLY=($(compgen -P "$before" -W "$words" -- "${{current##*,}}"))
    return
  fi
  [[ $current == -* ]] || return
  case ${{COMP_WORDS[1]}} in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _spmmbench spmmbench
)",
      kMadeHere, fmt::join(names, " "), fmt::join(words_of_options, ""),
      fmt::join(flags_of_commands, ""));
}

// What _arguments of zsh knows of an option: '*FLAG[help]:TYPE:action'.
std::string zsh_argument(const CLI::Option& option, const std::string& flag) {
  std::string help;
  for (const char c : option.get_description()) {
    if (c == '[' || c == ']' || c == ':') help += '\\';
    help += c;
  }
  std::string text = fmt::format("*{}[{}]", flag, help);
  if (takes_value(option)) {
    const std::vector<std::string> words = words_of(option);
    text += fmt::format(
        ":{}:{}", words.empty() ? "value" : "name",
        words.empty() ? "_files" : fmt::format("_sequence compadd - {}", fmt::join(words, " ")));
  }
  return in_single_quotes(text);
}

std::string zsh_completion(const CLI::App& app) {
  std::vector<std::string> names, cases;
  for (const CLI::App* command : commands_of(app)) {
    names.push_back(
        in_single_quotes(fmt::format("{}:{}", command->get_name(), command->get_description())));
    std::vector<std::string> arguments;
    for (const CLI::Option* option : options_of(*command))
      for (const std::string& flag : flags_of(*option))
        arguments.push_back(zsh_argument(*option, flag));
    cases.push_back(fmt::format("    {}) _arguments -s {} '*:path:_files' ;;\n",
                                command->get_name(), fmt::join(arguments, " ")));
  }
  return fmt::format(
      R"(#compdef spmmbench
# {}
_spmmbench() {{
  local -a commands=({})
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
{}  esac
}}
_spmmbench "$@"
)",
      kMadeHere, fmt::join(names, " "), fmt::join(cases, ""));
}

std::string fish_completion(const CLI::App& app) {
  std::string lines = fmt::format("# {}\n", kMadeHere);
  for (const CLI::App* command : commands_of(app)) {
    const std::string name = command->get_name();
    lines += fmt::format("complete -c spmmbench -n __fish_use_subcommand -f -a {} -d {}\n", name,
                         in_single_quotes(command->get_description()));
    for (const CLI::Option* option : options_of(*command)) {
      if (flags_of(*option).empty()) continue;
      lines += fmt::format("complete -c spmmbench -n '__fish_seen_subcommand_from {}'", name);
      for (const std::string& flag : option->get_snames()) lines += " -s " + flag;
      for (const std::string& flag : option->get_lnames()) lines += " -l " + flag;
      if (takes_value(*option)) lines += " -r";
      if (const std::vector<std::string> words = words_of(*option); !words.empty())
        lines += fmt::format(" -f -a '(__fish_append , {})'", fmt::join(words, " "));
      lines += fmt::format(" -d {}\n", in_single_quotes(option->get_description()));
    }
  }
  return lines;
}

std::string document_of(const CLI::App& app, const std::string& what) {
  if (what == "man") return man_page(app);
  if (what == "zsh") return zsh_completion(app);
  if (what == "fish") return fish_completion(app);
  return bash_completion(app);
}

}  // namespace

void add_document(CLI::App& app, ExitCode&) {
  auto what = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("document", "What the build makes of the options");
  command->group("");  // the build calls it; not shown in --help
  command->add_option("WHAT", *what, "man, or a shell to complete in")
      ->required()
      ->check(one_of({"man", "bash", "zsh", "fish"}));
  command->callback([&app, what] { print("{}", document_of(app, *what)); });
}

}  // namespace spmmbench
