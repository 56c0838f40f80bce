#include "cli/config_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "io/file.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

// Up to a # that is in no quotes. An apostrophe within a word is no quote.
std::string_view without_comment(std::string_view text) {
  constexpr std::string_view kBeforeQuotes = " \t=[,";
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '#') return trimmed(text.substr(0, at));
    if (text[at] != '"' && text[at] != '\'') continue;
    if (at > 0 && kBeforeQuotes.find(text[at - 1]) == std::string_view::npos) continue;
    at = std::min(text.find(text[at], at + 1), text.size());
  }
  return trimmed(text);
}

// Of a list only the double quotes are counted, since names in it may have an apostrophe.
bool closes_quotes(std::string_view value, bool part_of_list) {
  if (value.front() == '\'' && !part_of_list) return value.size() > 1 && value.back() == '\'';
  return std::count(value.begin(), value.end(), '"') % 2 == 0;
}

// The option of a command that a key names, or null.
const CLI::Option* option_of(const CLI::App& app, std::string_view section, std::string_view key) {
  if (const std::size_t dot = key.rfind('.'); section.empty() && dot != key.npos) {
    section = key.substr(0, dot);  // `run.json` is `json` of [run]
    key.remove_prefix(dot + 1);
  }
  const std::string name(key);
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() != section) continue;
    const CLI::Option* option = command->get_option_no_throw("--" + name);
    return option != nullptr || name.size() > 1 ? option : command->get_option_no_throw("-" + name);
  }
  return nullptr;
}

// What is wrong with an entry, or nothing. CLI11 gives a key without a value the value `true`, so
// that only a flag may be alone, or have this value without quotes.
std::string fault_of_entry(const CLI::Option* option, std::string_view key,
                           std::optional<std::string_view> value) {
  const bool flag = option == nullptr || option->get_expected_min() == 0;
  if (value ? value->empty() : !flag) return fmt::format("{}: expected a value", key);
  if (value && !flag && (*value == "true" || *value == "false"))
    return fmt::format("{0}: expected a value, got {1} (\"{1}\" is a text)", key, *value);
  return {};
}

// Reads a file line by line and says what is wrong with each.
class Form {
 public:
  explicit Form(const CLI::App& app) : app_(app) {}

  bool in_list() const { return in_list_; }  // a list goes on after the line before

  // What is wrong with a line that is no comment, or nothing.
  std::string fault_of(std::string_view line) {
    if (line.front() == '[' && !in_list_) {
      if (line.back() != ']') return fmt::format("expected ] after {}", line);
      section_ = trimmed(line.substr(1, line.size() - 2));
      return {};
    }
    std::string_view value = line;
    if (!in_list_) {
      const std::size_t equals = line.find('=');
      const std::string_view key = trimmed(line.substr(0, equals));
      const bool alone = equals == std::string_view::npos;
      if (!alone) value = trimmed(line.substr(equals + 1));
      const CLI::Option* option = option_of(app_, section_, key);
      std::string fault = fault_of_entry(option, key, alone ? std::nullopt : std::optional(value));
      if (alone || !fault.empty()) return fault;
    }
    const bool part_of_list = in_list_ || value.front() == '[';
    in_list_ = part_of_list && value.back() != ']';
    if (!closes_quotes(value, part_of_list))
      return fmt::format("expected a closing quote after {}", value);
    return {};
  }

 private:
  const CLI::App& app_;
  std::string section_;
  bool in_list_ = false;
};

// A flag that is false. CLI11 would count it as one that is given, which excludes others.
bool is_false_flag(const CLI::App& app, const CLI::ConfigItem& item) try {
  if (item.parents.size() != 1 || item.inputs.size() != 1) return false;
  const CLI::Option* option = option_of(app, item.parents.front(), item.name);
  return option != nullptr && option->get_expected_min() == 0 &&
         CLI::detail::to_flag_value(item.inputs.front()) < 0;
} catch (const std::logic_error&) {  // no flag's value: CLI11 refuses it
  return false;
}

}  // namespace

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& input) const {
  const std::string file = app_.get_config_ptr()->as<std::string>();
  std::string text;
  std::size_t number = 0, list = 0;  // list: the line on which the last one begins
  Form form(app_);
  for (std::string line; std::getline(input, line);) {
    if (++number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
    const std::string_view content = without_comment(line);
    if (content.empty() || content.front() == ';') continue;
    text += std::string(form.in_list() ? " " : "\n") + std::string(content);  // a list on one line
    if (!form.in_list()) list = number;
    if (const std::string fault = form.fault_of(content); !fault.empty())
      throw Error(fmt::format("{}:{}: {}", file, number, fault));
  }
  if (form.in_list())
    throw Error(fmt::format("{}:{}: expected ] at the end of the list", file, list));
  std::istringstream checked(text);
  std::vector<CLI::ConfigItem> items = ConfigBase::from_config(checked);
  std::erase_if(items, [this](const CLI::ConfigItem& item) { return is_false_flag(app_, item); });
  return items;
}

}  // namespace spmmbench
