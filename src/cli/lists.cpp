#include "cli/lists.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/limits.hpp"
#include "core/parse_number.hpp"
#include "io/output.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

constexpr std::size_t kMostValues = 10'000;  // in one list; a longer one must be a mistake

std::int64_t parse_positive(std::string_view text, std::string_view whole, std::string_view flag) {
  const auto value = parse_number<std::int64_t>(text);
  if (!value || *value < 1)
    throw Error(fmt::format("{} '{}': expected positive integers such as 128, 32,64 or 32:512:x2",
                            flag, whole));
  if (*value > kLargestN)
    throw Error(fmt::format("{} '{}': expected at most {}", flag, whole, kLargestN));
  return *value;
}

Error not_a_range(std::string_view flag, std::string_view text) {
  return Error(
      fmt::format("{} '{}': expected BEGIN:END:xFACTOR or BEGIN:END:STEP, rising", flag, text));
}

// What is wrong with the name of `what`, or nothing.
std::string require_name(const std::string& text, std::string_view what) {
  if (text.empty()) return fmt::format("expected a {}, got an empty name", what);
  if (text.front() != '-') return {};
  return fmt::format("expected a {}, got '{}' (./{} names one)", what, text, text);
}

}  // namespace

std::vector<std::string> split_list(std::string_view text, std::string_view flag) {
  const std::string_view whole = text;
  std::vector<std::string> items;
  while (true) {
    const std::size_t comma = text.find(',');
    items.emplace_back(text.substr(0, comma));
    if (items.back().empty())
      throw Error(
          fmt::format("{} '{}': expected a comma-separated list without empty items", flag, whole));
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

std::vector<Spec> parse_reorderings(std::string_view list) {
  std::vector<Spec> out;
  for (const std::string& text : split_list(list, "--reorder")) {
    const Spec asked = Spec::parse(text);
    if (asked.name.find_first_of("*?") == std::string::npos) {
      check_options(Registry<Reordering>::instance().at(asked.name), asked.options);
      out.push_back(asked);
      continue;
    }
    const std::size_t before = out.size();
    for (const Reordering* order : Registry<Reordering>::instance().sorted()) {
      if (!glob_match(asked.name, order->name())) continue;
      check_options(*order, asked.options);
      out.push_back({order->name(), asked.options});
    }
    if (out.size() == before)
      throw Error(fmt::format("--reorder {}: no row ordering matches", asked.name));
  }
  return out;
}

std::vector<std::int64_t> parse_range_list(std::string_view text, std::string_view flag) {
  std::vector<std::int64_t> values;
  for (const std::string& item : split_list(text, flag)) {
    const std::string_view range = item;
    const std::size_t first = range.find(':');
    if (first == std::string_view::npos) {
      values.push_back(parse_positive(range, text, flag));
      continue;
    }
    const std::size_t second = range.find(':', first + 1);
    if (second == std::string_view::npos) throw not_a_range(flag, text);
    const std::int64_t begin = parse_positive(range.substr(0, first), text, flag);
    const std::int64_t end =
        parse_positive(range.substr(first + 1, second - first - 1), text, flag);
    std::string_view step = range.substr(second + 1);
    const bool times = step.starts_with('x');
    if (times) step.remove_prefix(1);
    const std::int64_t by = parse_positive(step, text, flag);
    if (end < begin || (times && by < 2)) throw not_a_range(flag, text);
    for (std::int64_t n = begin;; n = times ? n * by : n + by) {
      if (values.size() == kMostValues)
        throw Error(fmt::format("{} '{}': expected at most {} values", flag, text, kMostValues));
      values.push_back(n);
      if (times ? n > end / by : n > end - by) break;
    }
  }
  return values;
}

CLI::Option* add_list_option(CLI::App& command, const std::string& name,
                             std::vector<std::string>& items, const std::string& help) {
  return command.add_option(name, items, help)->delimiter(',')->allow_extra_args(false);
}

CLI::Option* add_output_option(CLI::App& command, const std::string& name, std::string& path,
                               const std::string& help) {
  return command.add_option(name, path, help)->check([](const std::string& text) {
    return text == kStandardOutput ? std::string() : require_name(text, "file to write");
  });
}

CLI::Option* add_folder_option(CLI::App& command, const std::string& name, std::string& path,
                               const std::string& help) {
  return command.add_option(name, path, help)->check([](const std::string& text) {
    return require_name(text, "folder");
  });
}

void add_seed_option(CLI::App& command, std::uint64_t& seed, const std::string& help) {
  command.add_option("--seed", seed, help)
      ->capture_default_str()
      ->check(integer_up_to(std::numeric_limits<std::uint64_t>::max()));
}

void refuse_empty_values(CLI::App& command) {
  for (CLI::Option* option : command.get_options())
    if (option->get_expected_min() > 0)  // no flag
      option->check([](const std::string& text) {
        return text.empty() ? std::string("expected a value, got an empty one") : std::string();
      });
}

CLI::Validator integer_up_to(std::uint64_t most) {
  return CLI::Validator(
      [most](const std::string& text) {
        const auto value = parse_number<std::uint64_t>(text);
        return value && *value <= most
                   ? ""
                   : fmt::format("expected an integer from 0 to {}, got '{}'", most, text);
      },
      "");
}

std::string require_positive(const std::string& text) {
  const auto value = parse_number<double>(text);
  return value && *value > 0 && std::isfinite(*value)
             ? ""
             : fmt::format("expected a positive number, got '{}'", text);
}

std::string require_not_negative(const std::string& text) {
  const bool zero = parse_number<double>(text).value_or(1) == 0;
  return zero || require_positive(text).empty()
             ? ""
             : fmt::format("expected a number that is not negative, got '{}'", text);
}

}  // namespace spmmbench
