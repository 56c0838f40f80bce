#include "report/junit.hpp"

#include <fmt/format.h>

namespace spmmbench {
namespace {

// XML 1.0 has no way to write most control characters.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  return out;
}

std::string message_of(const ComparedCase& one) {
  if (!one.reason.empty()) return one.reason;
  if (!one.times) return std::string(to_string(one.verdict));
  return fmt::format(
      "{:.3f} times the old time: {:.2f} us, was {:.2f} us (minimum effect {:.1f} %)",
      one.times->ratio, one.times->new_us, one.times->base_us, one.min_effect * 100);
}

std::string outcome_of(const ComparedCase& one) {
  switch (one.verdict) {
    case CaseVerdict::newly_wrong:
    case CaseVerdict::slower:
      return fmt::format("<failure type=\"{}\" message=\"{}\"/>", to_string(one.verdict),
                         escaped(message_of(one)));
    case CaseVerdict::unclear:
    case CaseVerdict::missing:
    case CaseVerdict::not_ok:
    case CaseVerdict::skipped:
      return fmt::format("<skipped message=\"{}\"/>", escaped(message_of(one)));
    case CaseVerdict::faster:
    case CaseVerdict::fixed:
    case CaseVerdict::added:
    case CaseVerdict::same: return {};
  }
  return {};
}

}  // namespace

std::string format_junit(const Comparison& comparison) {
  int failures = 0, skipped = 0;
  std::string tests;
  for (const ComparedCase& one : comparison.cases) {
    const ResultRow& row = one.row;
    const std::string outcome = outcome_of(one);
    failures += outcome.starts_with("<failure");
    skipped += outcome.starts_with("<skipped");
    tests += fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"{:.9f}\">{}</testcase>\n",
                         escaped(row.kernel),
                         escaped(fmt::format("{} n={} {} C {} {} {}", row.matrix.name, row.n,
                                             row.precision, row.c_type, row.layout, row.reorder)),
                         one.times ? one.times->new_us * 1e-6 : 0.0, outcome);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"spmmbench compare\" tests=\"{}\" failures=\"{}\" errors=\"0\" "
      "skipped=\"{}\">\n{}</testsuite>\n",
      comparison.cases.size(), failures, skipped, tests);
}

}  // namespace spmmbench
