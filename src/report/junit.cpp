#include "report/junit.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/numbered.hpp"
#include "report/identity.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

// XML 1.0 has no way to write U+FFFE and U+FFFF either.
std::string without_forbidden(std::string text) {
  const std::pair<std::string_view, std::string_view> shown[] = {
      {"\xef\xbf\xbe", R"(\xef\xbf\xbe)"}, {"\xef\xbf\xbf", R"(\xef\xbf\xbf)"}};
  for (const auto& [character, escape] : shown)
    for (auto at = text.find(character); at != std::string::npos; at = text.find(character, at))
      text.replace(at, character.size(), escape);
  return text;
}

// Control characters, most of which XML 1.0 has no way to write, are shown as \xNN.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : without_forbidden(printable_message(text))) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  return out;
}

// How loudly a CI service shows a test.
enum class Outcome { passed, failure, error, skipped };

Outcome outcome_of(const Comparison& comparison, CaseVerdict verdict) {
  if (comparison.fails(verdict)) return Outcome::failure;
  switch (verdict) {
    case CaseVerdict::not_able_to_tell:  // the comparison has one error for all of them
    case CaseVerdict::unclear:
    case CaseVerdict::missing:
    case CaseVerdict::not_ok:
    case CaseVerdict::skipped: return Outcome::skipped;
    default: return Outcome::passed;
  }
}

Outcome outcome_of(Change change) {
  switch (change) {
    case Change::slower: return Outcome::failure;
    case Change::not_able_to_tell:
    case Change::unclear: return Outcome::skipped;
    default: return Outcome::passed;
  }
}

std::string message_of(const Shift& shift, const Decision& decision) {
  const std::string seen = decision.resolution < 10
                               ? fmt::format("the smallest slowdown that would be seen is {:.1f} %",
                                             decision.resolution * 100)
                               : "no slowdown below a factor of 11 would be seen";
  return fmt::format("{:.3f} times the old time; {}", shift.ratio(), seen);
}

std::string message_of(const ComparedCase& one) {
  if (!one.times) return one.reason.empty() ? std::string(to_string(one.verdict)) : one.reason;
  const std::string text =
      fmt::format("{}: {:.2f} us, was {:.2f} us", message_of(one.times->shift, one.times->decision),
                  one.times->new_us, one.times->base_us);
  return one.reason.empty() ? text : fmt::format("{}; {}", text, one.reason);
}

// The tests so far, and how many of them did not pass.
struct Suite {
  std::string tests;
  int all = 0, failures = 0, errors = 0, skipped = 0;

  void add(const std::string& type, const std::string& name, double seconds, Outcome outcome,
           std::string_view verdict, const std::string& message) {
    ++all;
    std::string inside;
    const std::string attributes =
        fmt::format("type=\"{}\" message=\"{}\"", verdict, escaped(message));
    switch (outcome) {
      case Outcome::passed: break;
      case Outcome::failure: ++failures, inside = fmt::format("<failure {}/>", attributes); break;
      case Outcome::error: ++errors, inside = fmt::format("<error {}/>", attributes); break;
      case Outcome::skipped:
        ++skipped, inside = fmt::format("<skipped message=\"{}\"/>", escaped(message));
        break;
    }
    tests += fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"{:.9f}\">{}</testcase>\n",
                         escaped(type), escaped(name), seconds, inside);
  }
};

}  // namespace

std::string format_junit(const Comparison& comparison) {
  Suite suite;
  for (const ComparedGroup& group : comparison.groups)
    suite.add("geometric mean", group.kind + " " + group.name, 0, outcome_of(group.decision.change),
              to_string(group.decision.change), message_of(group.shift, group.decision));
  for (const ComparedCase& one : comparison.cases) {
    const ResultRow& row = one.row;
    const std::string operation = operation_of(row);
    suite.add(
        row.kernel,
        fmt::format("{} n={} {} C {} {} {}{}{}", row.matrix.name, row.n, row.precision, row.c_type,
                    row.layout, row.reorder, operation.empty() ? "" : " ", operation),
        one.times ? one.times->new_us * 1e-6 : 0, outcome_of(comparison, one.verdict),
        to_string(one.verdict), message_of(one));
  }
  if (comparison.exit_code() == ExitCode::not_able_to_tell)
    suite.add("comparison", "times", 0, Outcome::error, to_string(Change::not_able_to_tell),
              comparison.compared() == 0
                  ? "no case was timed on both sides"
                  : fmt::format("of {} and {} it cannot be told",
                                numbered(comparison.count_groups(Change::not_able_to_tell),
                                         "geometric mean"),
                                numbered(comparison.count(CaseVerdict::not_able_to_tell), "case")));
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"spmmbench compare\" tests=\"{}\" failures=\"{}\" errors=\"{}\" "
      "skipped=\"{}\">\n{}</testsuite>\n",
      suite.all, suite.failures, suite.errors, suite.skipped, suite.tests);
}

}  // namespace spmmbench
