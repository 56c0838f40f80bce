#pragma once
// Values to try an option with, made from its declaration alone.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "spmmbench/option.hpp"

namespace spmmbench::test {

// The default, both bounds, every choice.
inline std::vector<std::string> allowed_values(const OptionSpec& option) {
  std::vector<std::string> values = {option.default_value};
  const auto bounds = [&](const auto& range) {
    values.insert(values.end(), {fmt::format("{}", range.least), fmt::format("{}", range.most)});
  };
  if (const auto* integers = std::get_if<IntegerRange>(&option.allowed)) bounds(*integers);
  if (const auto* reals = std::get_if<RealRange>(&option.allowed)) bounds(*reals);
  if (const auto* choices = std::get_if<Choices>(&option.allowed))
    values.insert(values.end(), choices->names.begin(), choices->names.end());
  if (std::holds_alternative<Flag>(option.allowed)) values.insert(values.end(), {"0", "1"});
  if (const auto* form = std::get_if<TextForm>(&option.allowed))
    values.insert(values.end(), form->examples.begin(), form->examples.end());
  return values;
}

// Just outside of the bounds, and values of another type.
inline std::vector<std::string> refused_values(const OptionSpec& option) {
  std::vector<std::string> values = {"", "no such value"};
  if (const auto* integers = std::get_if<IntegerRange>(&option.allowed))
    values.insert(values.end(),
                  {fmt::format("{}", integers->least - 1), fmt::format("{}", integers->most + 1),
                   fmt::format("{}.5", integers->least), "12x"});
  if (const auto* reals = std::get_if<RealRange>(&option.allowed)) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    values.insert(values.end(), {fmt::format("{}", std::nextafter(reals->least, -kInfinity)),
                                 fmt::format("{}", std::nextafter(reals->most, kInfinity)), "nan",
                                 "inf", "0.5.1"});
  }
  if (std::holds_alternative<Flag>(option.allowed)) values.insert(values.end(), {"2", "maybe"});
  const std::vector<std::string> allowed = allowed_values(option);
  if (!option.automatic && !std::holds_alternative<TextForm>(option.allowed) &&
      std::ranges::find(allowed, "auto") == allowed.end())
    values.emplace_back("auto");
  return values;
}

}  // namespace spmmbench::test
