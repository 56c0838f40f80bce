#pragma once
// An option of a kernel, reordering, format or generator is declared once, as a constant that knows
// its type, range, default and help. `spmmbench list` shows it, values are checked against it when
// the cases are planned, and the code reads its value through it:
//
//   const auto kStages = auto_integer_option("stages", 1, 8, "stages of the ring");
//   ... .options = {kStages, kSeed} ...
//   const int stages = kStages(options).value_or(4);

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "spmmbench/spec.hpp"

namespace spmmbench {

// What the values of an option may be. Bounds are included.
struct IntegerRange {
  std::int64_t least, most;
};
struct RealRange {
  double least, most;
};
struct Choices {
  std::vector<std::string> names;
};
struct Flag {};  // 0|1|false|true|no|yes|off|on
struct TextForm {
  std::string expected;                             // "8 digits of 0 and 1"
  std::function<bool(const std::string&)> accepts;  // may throw Error instead
  std::vector<std::string> examples;                // values that it accepts, for the tests
};
using Allowed = std::variant<IntegerRange, RealRange, Choices, Flag, TextForm>;

struct OptionSpec {
  std::string name;
  Allowed allowed;
  std::string default_value;  // as a user would type it
  std::string help;           // one line: meaning and unit
  bool automatic = false;     // "auto" is allowed: the value is then chosen from the matrix

  std::string type() const;      // integer, real, choice, flag or text
  std::string expected() const;  // "an integer from 1 to 8, or auto"
  // Throws Error that names the option, the value and what was expected.
  void check(const std::string& value) const;
};

// Throws Error for the first option of `given` that is not declared or has a value that is not
// allowed. `owner` names what has the options: "kernel rsh".
void check_options(const std::vector<OptionSpec>& declared, const Options& given,
                   std::string_view owner);

// The value in `given`, else the default. Throws Error as OptionSpec::check does.
std::string text_value(const OptionSpec& spec, const Options& given);
std::int64_t integer_value(const OptionSpec& spec, const Options& given);
double real_value(const OptionSpec& spec, const Options& given);
bool flag_value(const OptionSpec& spec, const Options& given);

// An option whose value is read as T: an integer type, double, bool, std::string, or an optional of
// these, which is empty for "auto".
template <class T>
struct Option : OptionSpec {
  T operator()(const Options& given) const { return read<T>(given); }

 private:
  template <class Value>
  Value read(const Options& given) const {
    if constexpr (requires { typename Value::value_type; } && !std::is_same_v<Value, std::string>) {
      if (text_value(*this, given) == "auto") return std::nullopt;
      return read<typename Value::value_type>(given);
    } else if constexpr (std::is_same_v<Value, bool>) {
      return flag_value(*this, given);
    } else if constexpr (std::is_integral_v<Value>) {
      return static_cast<Value>(integer_value(*this, given));
    } else if constexpr (std::is_floating_point_v<Value>) {
      return real_value(*this, given);
    } else {
      return text_value(*this, given);
    }
  }
};

template <class T = int>
Option<T> integer_option(std::string name, std::int64_t value, std::int64_t least,
                         std::int64_t most, std::string help) {
  return {{std::move(name), IntegerRange{least, most}, std::to_string(value), std::move(help)}};
}
template <class T = int>
Option<std::optional<T>> auto_integer_option(std::string name, std::int64_t least,
                                             std::int64_t most, std::string help) {
  return {{std::move(name), IntegerRange{least, most}, "auto", std::move(help), true}};
}
// `value` as a user would type it.
inline Option<double> real_option(std::string name, std::string value, double least, double most,
                                  std::string help) {
  return {{std::move(name), RealRange{least, most}, std::move(value), std::move(help)}};
}
inline Option<std::optional<double>> auto_real_option(std::string name, double least, double most,
                                                      std::string help) {
  return {{std::move(name), RealRange{least, most}, "auto", std::move(help), true}};
}
// T is int where the names are numbers.
template <class T = std::string>
Option<T> choice_option(std::string name, std::string value, std::vector<std::string> names,
                        std::string help) {
  return {{std::move(name), Choices{std::move(names)}, std::move(value), std::move(help)}};
}
template <class T = std::string>
Option<std::optional<T>> auto_choice_option(std::string name, std::vector<std::string> names,
                                            std::string help) {
  return {{std::move(name), Choices{std::move(names)}, "auto", std::move(help), true}};
}
inline Option<bool> flag_option(std::string name, bool value, std::string help) {
  return {{std::move(name), Flag{}, value ? "1" : "0", std::move(help)}};
}
inline Option<std::string> text_option(std::string name, std::string value, TextForm form,
                                       std::string help) {
  return {{std::move(name), std::move(form), std::move(value), std::move(help)}};
}
inline Option<std::optional<std::string>> auto_text_option(std::string name, TextForm form,
                                                           std::string help) {
  return {{std::move(name), std::move(form), "auto", std::move(help), true}};
}
// 0 to 2^53: a number that every reader of the JSON holds exactly.
inline Option<std::uint64_t> seed_option(std::string help) {
  return integer_option<std::uint64_t>("seed", 1, 0, std::int64_t{1} << 53, std::move(help));
}

}  // namespace spmmbench
