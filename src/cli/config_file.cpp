#include "cli/config_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#define TOML_HEADER_ONLY 1  // no library to carry along
#include <toml++/toml.h>

#include "cli/help.hpp"
#include "cli/lists.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/suggest.hpp"

namespace spmmbench {
namespace {

bool is_flag(const CLI::Option& option) { return option.get_expected_min() == 0; }

// The option of a command that a key names, or null.
const CLI::Option* option_of(const CLI::App& command, std::string_view key) {
  const std::string name(key);
  const CLI::Option* option = command.get_option_no_throw("--" + name);
  return option != nullptr || name.size() > 1 ? option : command.get_option_no_throw("-" + name);
}

// A flag that is false. CLI11 would count it as one that is given, which excludes others.
bool is_false_flag(const CLI::Option& option, const CLI::ConfigItem& item) try {
  return is_flag(option) && item.inputs.size() == 1 &&
         CLI::detail::to_flag_value(item.inputs.front()) < 0;
} catch (const std::logic_error&) {  // no flag's value: CLI11 refuses it
  return false;
}

// The text that a command line would have for a value, or nothing where it could have none.
std::optional<std::string> text_of(const toml::node& value) {
  if (const auto* text = value.as_string()) return text->get();
  if (const auto* whole = value.as_integer()) return fmt::format("{}", whole->get());
  if (const auto* real = value.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* truth = value.as_boolean()) return fmt::format("{}", truth->get());
  return {};
}

// Options from a parsed file.
class Items {
 public:
  Items(const CLI::App& app, std::string file) : app_(app), file_(std::move(file)) {}

  void add(const toml::key& section, const toml::node& entries) {
    if (!entries.is_table())
      fail(section.source(), "{}: expected a section for a command before it, such as [run]",
           section.str());
    const CLI::App& command = command_of(section);
    for (const auto& [key, value] : *entries.as_table()) {
      const CLI::Option* option = option_of(command, key.str());
      if (option == nullptr)
        fail(key.source(), "[{}] {}: no such option{}", section.str(), key.str(),
             did_you_mean(fmt::format("--{}", key.str()), option_names(command)));
      CLI::ConfigItem item;
      item.parents = {std::string(section)};
      item.name = key;
      item.inputs = inputs_of(*option, key, value);
      if (is_false_flag(*option, item)) continue;
      if (option->empty())  // else the command line gave it, which comes first
        for (const std::string& name : names_of(*option))
          places_[name] = fmt::format("{}:{}", file_, key.source().begin.line);
      items_.push_back(std::move(item));
    }
  }

  std::vector<CLI::ConfigItem> take() { return std::move(items_); }
  std::map<std::string, std::string> take_places() { return std::move(places_); }

 private:
  template <class... Parts>
  [[noreturn]] void fail(const toml::source_region& at, fmt::format_string<Parts...> what,
                         Parts&&... parts) const {
    throw Error(fmt::format("{}:{}: {}", file_, at.begin.line,
                            fmt::format(what, std::forward<Parts>(parts)...)));
  }

  [[noreturn]] void no_value(const toml::key& key, const toml::node& at,
                             std::string_view got) const {
    fail(at.source(), "{}: expected a value, got {}", key.str(), got);
  }

  const CLI::App& command_of(const toml::key& section) const {
    std::vector<std::string> names;
    for (const CLI::App* command : app_.get_subcommands(nullptr)) {
      if (command->get_name() == section.str()) return *command;
      if (!command->get_group().empty()) names.push_back(command->get_name());
    }
    fail(section.source(), "[{}]: no such command{}", section.str(),
         did_you_mean(section.str(), names));
  }

  std::vector<std::string> inputs_of(const CLI::Option& option, const toml::key& key,
                                     const toml::node& value) const {
    const bool takes_one = option.get_items_expected_max() == 1;
    if (value.is_boolean() && !is_flag(option))
      no_value(key, value, fmt::format("{0} (\"{0}\" is a text)", *text_of(value)));
    std::vector<std::string> inputs;
    const auto take = [&](const toml::node& one, std::string_view before) {
      const std::optional<std::string> text = text_of(one);
      if (!text) no_value(key, one, "a list, a table or a date");
      inputs.push_back(fmt::format("{}{}", before, *text));
    };
    if (const toml::array* list = value.as_array()) {
      for (const toml::node& one : *list) take(one, "");
    } else if (const toml::table* table = value.as_table()) {  // as `--tag KEY=VALUE`
      if (takes_one) no_value(key, value, "a table");
      for (const auto& [name, one] : *table) take(one, fmt::format("{}=", name.str()));
    } else {
      take(value, "");
    }
    if (inputs.empty()) no_value(key, value, "an empty list");
    if (inputs.size() > 1 && takes_one) {
      if (option.get_type_name() != kListType) no_value(key, value, "a list");
      inputs = {fmt::format("{}", fmt::join(inputs, ","))};
    }
    return inputs;
  }

  const CLI::App& app_;
  std::string file_;
  std::vector<CLI::ConfigItem> items_;
  std::map<std::string, std::string> places_;  // FILE:LINE of an option, by each of its names
};

}  // namespace

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& input) const {
  const std::string file = app_.get_config_ptr()->as<std::string>();
  const std::string text{std::istreambuf_iterator<char>(input), {}};
  Items items(app_, file);
  try {
    for (const auto& [key, value] : toml::parse(std::string_view(text))) items.add(key, value);
  } catch (const toml::parse_error& error) {
    throw Error(fmt::format("{}:{}: {}", file, error.source().begin.line, error.description()));
  }
  places_ = items.take_places();
  return items.take();
}

std::string ConfigFile::with_place(const std::string& message) const {
  const auto place = places_.find(message.substr(0, message.find_first_of(" :")));
  return place == places_.end() ? message : fmt::format("{}: {}", place->second, message);
}

}  // namespace spmmbench
