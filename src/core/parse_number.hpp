#pragma once
// Numbers as text, in the C locale.

#include <charconv>
#include <optional>
#include <string_view>

namespace spmmbench {

// The number that `text` is as a whole; none if it is no number or T cannot hold it. No blank and
// no '+' may precede it.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

}  // namespace spmmbench
