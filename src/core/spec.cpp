#include "spmmbench/spec.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "spmmbench/error.hpp"
#include "spmmbench/suggest.hpp"

namespace spmmbench {
namespace {

template <class T>
T parse_number(std::string_view key, const std::string& text, std::string_view expected) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw Error(fmt::format("option {}={}: expected {}", key, text, expected));
  return value;
}

}  // namespace

bool Options::has(std::string_view key) const { return values_.contains(std::string(key)); }

std::string Options::get(std::string_view key, std::string_view fallback) const {
  const auto it = values_.find(std::string(key));
  return it == values_.end() ? std::string(fallback) : it->second;
}

std::int64_t Options::get_int(std::string_view key, std::int64_t fallback, std::int64_t min,
                              std::int64_t max) const {
  if (!has(key)) return fallback;
  const std::string text = get(key, "");
  const auto value = parse_number<std::int64_t>(key, text, "an integer");
  if (value < min || value > max)
    throw Error(
        fmt::format("option {}={}: expected an integer from {} to {}", key, text, min, max));
  return value;
}

double Options::get_double(std::string_view key, double fallback) const {
  return has(key) ? parse_number<double>(key, get(key, ""), "a number") : fallback;
}

bool Options::get_bool(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  const std::string text = get(key, "");
  if (text == "1" || text == "true" || text == "yes" || text == "on") return true;
  if (text == "0" || text == "false" || text == "no" || text == "off") return false;
  throw Error(fmt::format("option {}={}: expected 0 or 1", key, text));
}

std::string Options::get_choice(std::string_view key, std::string_view fallback,
                                const std::vector<std::string>& choices) const {
  const std::string text = get(key, fallback);
  if (std::find(choices.begin(), choices.end(), text) == choices.end())
    throw Error(
        fmt::format("option {}={}: expected one of {}", key, text, fmt::join(choices, ", ")));
  return text;
}

void Options::require_known(const std::vector<OptionSpec>& known, std::string_view owner) const {
  for (const auto& [key, value] : values_) {
    if (std::any_of(known.begin(), known.end(),
                    [&](const OptionSpec& spec) { return spec.name == key; }))
      continue;
    std::vector<std::string> names;
    for (const OptionSpec& spec : known) names.push_back(spec.name);
    throw Error(names.empty() ? fmt::format("{} has no options (given: {})", owner, key)
                              : fmt::format("{} has no option '{}'{}; it has: {}", owner, key,
                                            did_you_mean(key, names), fmt::join(names, ", ")));
  }
}

void Options::set(std::string key, std::string value) {
  values_.insert_or_assign(std::move(key), std::move(value));
}

Spec Spec::parse(std::string_view text) {
  Spec spec;
  const std::size_t question = text.find('?');
  spec.name = text.substr(0, question);
  if (spec.name.empty())
    throw Error(fmt::format("'{}': expected NAME or NAME?key=value&key=value", text));
  if (question == std::string_view::npos) return spec;
  std::string_view rest = text.substr(question + 1);
  while (!rest.empty()) {
    const std::size_t ampersand = rest.find('&');
    const std::string_view pair = rest.substr(0, ampersand);
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0)
      throw Error(fmt::format("'{}': expected key=value, got '{}'", text, pair));
    spec.options.set(std::string(pair.substr(0, equals)), std::string(pair.substr(equals + 1)));
    rest = ampersand == std::string_view::npos ? std::string_view{} : rest.substr(ampersand + 1);
  }
  return spec;
}

std::string Spec::to_string() const {
  std::string text = name;
  char separator = '?';
  for (const auto& [key, value] : options.values()) {
    text += fmt::format("{}{}={}", separator, key, value);
    separator = '&';
  }
  return text;
}

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || (pattern[p] == text[t] && pattern[p] != '*'))) {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace spmmbench
