#pragma once
// Numbers of things in messages: "1 case", "2 cases".

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace spmmbench {

// `many`: the plural, where it is not the word with an s.
template <std::integral Count>
std::string numbered(Count count, std::string_view one, std::string_view many = {}) {
  if (count == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, many);
}

}  // namespace spmmbench
