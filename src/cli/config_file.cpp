#include "cli/config_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
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

// What is wrong with a line that is no comment, or nothing. `in_list`: a list goes on after it.
std::string fault_of(std::string_view line, bool& in_list) {
  if (line.front() == '[' && !in_list)
    return line.back() == ']' ? "" : fmt::format("expected ] after {}", line);
  std::string_view value = line;
  if (!in_list) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) return {};  // a flag
    value = trimmed(line.substr(equals + 1));
    if (value.empty()) return fmt::format("{}: expected a value", trimmed(line.substr(0, equals)));
  }
  const bool part_of_list = in_list || value.front() == '[';
  in_list = part_of_list && value.back() != ']';
  if (!closes_quotes(value, part_of_list))
    return fmt::format("expected a closing quote after {}", value);
  return {};
}

}  // namespace

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& input) const {
  const std::string file = app_.get_config_ptr()->as<std::string>();
  std::string text;
  std::size_t number = 0, list = 0;  // list: the line on which the last one begins
  bool in_list = false;
  for (std::string line; std::getline(input, line);) {
    if (++number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
    const std::string_view content = without_comment(line);
    if (content.empty() || content.front() == ';') continue;
    text += std::string(in_list ? " " : "\n") + std::string(content);  // a list on one line
    if (!in_list) list = number;
    if (const std::string fault = fault_of(content, in_list); !fault.empty())
      throw Error(fmt::format("{}:{}: {}", file, number, fault));
  }
  if (in_list) throw Error(fmt::format("{}:{}: expected ] at the end of the list", file, list));
  std::istringstream checked(text);
  return ConfigBase::from_config(checked);
}

}  // namespace spmmbench
