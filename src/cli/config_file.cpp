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

#include "cli/lists.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

bool is_flag(const CLI::Option* option) {
  return option != nullptr && option->get_expected_min() == 0;
}

// The option of a command that a key names, or null.
const CLI::Option* option_of(const CLI::App& app, std::string_view section, std::string_view key) {
  const std::string name(key);
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() != section) continue;
    const CLI::Option* option = command->get_option_no_throw("--" + name);
    return option != nullptr || name.size() > 1 ? option : command->get_option_no_throw("-" + name);
  }
  return nullptr;
}

// A flag that is false. CLI11 would count it as one that is given, which excludes others.
bool is_false_flag(const CLI::Option* option, const CLI::ConfigItem& item) try {
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

  void add_section(std::string_view section, const toml::table& entries) {
    for (const auto& [key, value] : entries) add(section, key.str(), value);
  }

  void add(std::string_view section, std::string_view key, const toml::node& value) {
    const CLI::Option* option = option_of(app_, section, key);
    CLI::ConfigItem item;
    if (!section.empty()) item.parents = {std::string(section)};
    item.name = key;
    item.inputs = inputs_of(option, key, value);
    if (!is_false_flag(option, item)) items_.push_back(std::move(item));
  }

  std::vector<CLI::ConfigItem> take() { return std::move(items_); }

 private:
  [[noreturn]] void fail(std::string_view key, const toml::node& at, std::string_view got) const {
    throw Error(fmt::format("{}:{}: {}: expected a value, got {}", file_, at.source().begin.line,
                            key, got));
  }

  std::vector<std::string> inputs_of(const CLI::Option* option, std::string_view key,
                                     const toml::node& value) const {
    if (value.is_boolean() && !is_flag(option))
      fail(key, value, fmt::format("{0} (\"{0}\" is a text)", *text_of(value)));
    std::vector<std::string> inputs;
    const auto take = [&](const toml::node& one, std::string_view before) {
      const std::optional<std::string> text = text_of(one);
      if (!text) fail(key, one, "a list, a table or a date");
      inputs.push_back(fmt::format("{}{}", before, *text));
    };
    if (const toml::array* list = value.as_array()) {
      for (const toml::node& one : *list) take(one, "");
    } else if (const toml::table* table = value.as_table()) {  // as `--tag KEY=VALUE`
      for (const auto& [name, one] : *table) take(one, fmt::format("{}=", name.str()));
    } else {
      take(value, "");
    }
    if (inputs.empty()) fail(key, value, "an empty list");
    if (inputs.size() > 1 && option != nullptr && option->get_items_expected_max() == 1) {
      if (option->get_type_name() != kListType) fail(key, value, "a list");
      inputs = {fmt::format("{}", fmt::join(inputs, ","))};
    }
    return inputs;
  }

  const CLI::App& app_;
  std::string file_;
  std::vector<CLI::ConfigItem> items_;
};

}  // namespace

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& input) const {
  const std::string file = app_.get_config_ptr()->as<std::string>();
  const std::string text{std::istreambuf_iterator<char>(input), {}};
  Items items(app_, file);
  try {
    for (const auto& [key, value] : toml::parse(std::string_view(text)))
      if (const toml::table* section = value.as_table()) items.add_section(key.str(), *section);
      else items.add({}, key.str(), value);
  } catch (const toml::parse_error& error) {
    throw Error(fmt::format("{}:{}: {}", file, error.source().begin.line, error.description()));
  }
  return items.take();
}

}  // namespace spmmbench
