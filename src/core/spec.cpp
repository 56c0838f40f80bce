#include "spmmbench/spec.hpp"

#include <fmt/format.h>

#include "spmmbench/error.hpp"

namespace spmmbench {
bool Options::has(std::string_view key) const { return values_.contains(std::string(key)); }

std::string Options::get(std::string_view key, std::string_view fallback) const {
  const auto it = values_.find(std::string(key));
  return it == values_.end() ? std::string(fallback) : it->second;
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
  for (std::size_t at = question; at != std::string_view::npos;) {
    const std::size_t ampersand = text.find('&', at + 1);
    const std::string_view pair = text.substr(at + 1, ampersand - at - 1);
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0)
      throw Error(fmt::format("'{}': expected key=value, got '{}'", text, pair));
    if (spec.options.has(pair.substr(0, equals)))
      throw Error(fmt::format("'{}': {} is given twice", text, pair.substr(0, equals)));
    spec.options.set(std::string(pair.substr(0, equals)), std::string(pair.substr(equals + 1)));
    at = ampersand;
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
