#include "spmmbench/option.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/contains.hpp"
#include "core/parse_number.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/suggest.hpp"

namespace spmmbench {
namespace {

constexpr std::string_view kAuto = "auto";

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

std::optional<bool> parse_flag(const std::string& text) {
  if (text == "1" || text == "true" || text == "yes" || text == "on") return true;
  if (text == "0" || text == "false" || text == "no" || text == "off") return false;
  return std::nullopt;
}

// False also for text that is no number, and for NaN.
template <class T, class Range>
bool within(const std::string& text, const Range& range) {
  const std::optional<T> value = parse_number<T>(text);
  return value && *value >= range.least && *value <= range.most;
}

}  // namespace

std::string OptionSpec::type() const {
  constexpr const char* kNames[] = {"integer", "real", "choice", "flag", "text"};
  static_assert(std::size(kNames) == std::variant_size_v<Allowed>);
  return kNames[allowed.index()];
}

std::string OptionSpec::expected() const {
  std::string text = std::visit(
      Overloaded{[](const IntegerRange& range) {
                   return fmt::format("an integer from {} to {}", range.least, range.most);
                 },
                 [](const RealRange& range) {
                   return fmt::format("a number from {} to {}", range.least, range.most);
                 },
                 [this](const Choices& choices) {
                   std::vector<std::string> names = choices.names;
                   if (automatic) std::erase(names, kAuto);  // a plug-in may name it itself
                   return fmt::format("one of {}", fmt::join(names, ", "));
                 },
                 [](const Flag&) { return std::string("0 or 1"); },
                 [](const TextForm& form) { return form.expected; }},
      allowed);
  if (automatic) text += fmt::format(", or {}", kAuto);
  return text;
}

void OptionSpec::check(const std::string& value) const {
  if (automatic && value == kAuto) return;
  const bool ok = std::visit(
      Overloaded{[&](const IntegerRange& range) { return within<std::int64_t>(value, range); },
                 [&](const RealRange& range) { return within<double>(value, range); },
                 [&](const Choices& choices) { return contains(choices.names, value); },
                 [&](const Flag&) { return parse_flag(value).has_value(); },
                 [&](const TextForm& form) { return form.accepts(value); }},
      allowed);
  if (!ok) throw Error(fmt::format("option {}={}: expected {}", name, value, expected()));
}

void check_options(const std::vector<OptionSpec>& declared, const Options& given,
                   std::string_view owner) {
  for (const auto& [key, value] : given.values()) {
    const auto spec = std::find_if(declared.begin(), declared.end(),
                                   [&key = key](const OptionSpec& s) { return s.name == key; });
    if (spec == declared.end()) {
      std::vector<std::string> names;
      names.reserve(declared.size());
      for (const OptionSpec& s : declared) names.push_back(s.name);
      throw Error(names.empty() ? fmt::format("{} has no options (given: {})", owner, key)
                                : fmt::format("{} has no option '{}'{}; it has: {}", owner, key,
                                              did_you_mean(key, names), fmt::join(names, ", ")));
    }
    try {
      spec->check(value);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", owner, error.what()));
    }
  }
}

void check_options(const Kernel& kernel, const Options& options) {
  if (options.values().empty()) return;
  check_options(kernel.info().options, options, "kernel " + kernel.info().name);
}

void check_options(const Format& format, const Options& options) {
  check_options(format.options(), options, "format " + format.name());
}

void check_options(const Reordering& reordering, const Options& options) {
  check_options(reordering.options(), options, "reordering " + reordering.name());
  reordering.check(options);
}

void check_options(const Generator& generator, const Options& options) {
  check_options(generator.options(), options, "generator " + generator.name());
  generator.check(options);
}

std::string text_value(const OptionSpec& spec, const Options& given) {
  std::string text = given.get(spec.name, spec.default_value);
  spec.check(text);
  return text;
}

std::int64_t integer_value(const OptionSpec& spec, const Options& given) {
  return parse_number<std::int64_t>(text_value(spec, given)).value();
}

double real_value(const OptionSpec& spec, const Options& given) {
  return parse_number<double>(text_value(spec, given)).value();
}

bool flag_value(const OptionSpec& spec, const Options& given) {
  return parse_flag(text_value(spec, given)).value();
}

}  // namespace spmmbench
