#include "spmmbench/precision.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

template <class Values>
auto parse(const char* what, std::string_view text, const Values& values) {
  std::vector<std::string_view> names;
  for (const auto value : values) {
    if (text == to_string(value)) return value;
    names.push_back(to_string(value));
  }
  const std::string_view last = names.back();
  names.pop_back();
  throw Error(fmt::format("{} '{}': expected {} or {}", what, text, fmt::join(names, ", "), last));
}

}  // namespace

std::string_view to_string(Precision p) {
  switch (p) {
#define SPMMBENCH_CASE(id, name, ...) \
  case Precision::id: return name;
    SPMMBENCH_PRECISIONS(SPMMBENCH_CASE)
#undef SPMMBENCH_CASE
  }
  return "?";
}

std::string_view to_string(ElementType t) {
  switch (t) {
#define SPMMBENCH_CASE(id, name, ...) \
  case ElementType::id: return name;
    SPMMBENCH_ELEMENT_TYPES(SPMMBENCH_CASE)
#undef SPMMBENCH_CASE
  }
  return "?";
}

Precision parse_precision(std::string_view text) { return parse("precision", text, kPrecisions); }

ElementType parse_element_type(std::string_view text) {
  return parse("element type", text, kElementTypes);
}

}  // namespace spmmbench
