// How a comparison is shown: the table for people, JSON for programs.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "core/numbered.hpp"
#include "report/answer.hpp"
#include "report/comparison.hpp"
#include "report/identity.hpp"
#include "report/terminal.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLabelWidth = 43;
// How many cases that are UNCLEAR or NOT ABLE TO TELL are shown without --all.
constexpr int kMostShown = 10;
constexpr std::size_t kTableWidth = 100;

constexpr CaseVerdict kVerdicts[] = {
    CaseVerdict::newly_wrong, CaseVerdict::slower,           CaseVerdict::missing,
    CaseVerdict::not_ok,      CaseVerdict::faster,           CaseVerdict::fixed,
    CaseVerdict::unclear,     CaseVerdict::not_able_to_tell, CaseVerdict::added,
    CaseVerdict::same,        CaseVerdict::skipped};

// A long name of a matrix is cut before that of the kernel.
std::string case_label(const ResultRow& row) {
  std::string rest =
      printable_message(fmt::format(" n={} {} {}", row.n, row.precision, label_of(row)));
  if (row.c_type != "fp32" && row.c_type != "fp64") rest += fmt::format(" C {}", row.c_type);
  if (row.layout != "row") rest += " column-major";
  if (const std::string operation = operation_of(row); !operation.empty()) rest += " " + operation;
  constexpr std::size_t kShortestName = 12;
  const std::size_t room = kLabelWidth - std::min(rest.size(), kLabelWidth - kShortestName);
  return clip(clip(printable_message(row.matrix.name), room) + rest, kLabelWidth);
}

// The smallest slowdown that would have been found.
std::string percent_seen(double resolution) {
  if (resolution > 9.99) return ">999";
  return fmt::format("{:.{}f}", resolution * 100, resolution < 0.995 ? 1 : 0);
}

std::string line_of(const ComparedCase& one) {
  std::string line = fmt::format("{:<{}} ", case_label(one.row), kLabelWidth);
  if (const auto& times = one.times)
    line += fmt::format("{:>10.2f} {:>10.2f} {:>8.3f} {:>6} ", times->base_us, times->new_us,
                        times->shift.ratio(), percent_seen(times->decision.resolution));
  else line += fmt::format("{:>10} {:>10} {:>8} {:>6} ", "-", "-", "-", "");
  line += to_string(one.verdict);
  if (!one.reason.empty())
    line += fmt::format("\n    {}", clip(printable_message(one.reason), kTableWidth - 4));
  return line + "\n";
}

std::string case_lines(const Comparison& comparison, bool all) {
  std::string lines;
  std::map<CaseVerdict, int> shown;
  for (const ComparedCase& one : comparison.cases) {
    const bool dull = one.verdict == CaseVerdict::same || one.verdict == CaseVerdict::skipped;
    const bool limited =
        one.verdict == CaseVerdict::unclear || one.verdict == CaseVerdict::not_able_to_tell;
    if (!all && (dull || (limited && ++shown[one.verdict] > kMostShown))) continue;
    lines += line_of(one);
  }
  for (const auto& [verdict, count] : shown)
    if (count > kMostShown)
      lines += fmt::format("... and {} more that are {}: --all shows them\n", count - kMostShown,
                           to_string(verdict));
  if (lines.empty()) return lines;
  return fmt::format("{:<{}} {:>10} {:>10} {:>8} {:>6} verdict\n",
                     comparison.options.cold ? "case (cold times)" : "case (hot times)",
                     kLabelWidth, "base us", "new us", "new/base", "seen %") +
         lines + "\n";
}

std::string group_lines(const Comparison& comparison) {
  if (comparison.groups.empty()) return {};
  constexpr std::size_t kNameWidth = kLabelWidth + 11;
  std::string lines = fmt::format("{:<{}} {:>10} {:>8} {:>6} verdict\n", "geometric mean",
                                  kNameWidth, "cases", "new/base", "seen %");
  for (const ComparedGroup& group : comparison.groups) {
    const std::string name = printable_message(group.name);
    lines += fmt::format("{:<{}} {:>10} {:>8.4f} {:>6} {}\n",
                         clip(group.kind == "family" ? name + " (family)" : name, kNameWidth),
                         kNameWidth, group.cases, group.shift.ratio(),
                         percent_seen(group.decision.resolution), to_string(group.decision.change));
  }
  return lines + "\n";
}

// "0.31" for 0.3042: the value of --resolve with which this would be no problem.
std::string rounded_up(double fraction) {
  return fmt::format("{:.2f}", std::ceil(fraction * 100) / 100);
}

// A limit that lets more than a doubling of the time pass is no remedy.
constexpr double kCoarsestLimit = 1;

// How many runs, or what coarser limit, would turn NOT ABLE TO TELL into an answer.
std::string remedy(const Comparison& comparison) {
  int runs = 0;
  bool runs_help = true;
  double coarsest_group = 0, coarsest_case = 0;
  const auto add = [&](const Shift& shift, double resolution, std::size_t hypotheses, double limit,
                       Family family, double& coarsest) {
    const std::optional<int> needed =
        runs_needed(shift, alpha_share(comparison.options), hypotheses, limit, family);
    runs_help &= needed.has_value();
    runs = std::max(runs, needed.value_or(0));
    coarsest = std::max(coarsest, resolution);
  };
  const auto timed = static_cast<std::size_t>(comparison.compared());
  for (const ComparedGroup& one : comparison.groups)
    if (one.decision.change == Change::not_able_to_tell)
      add(one.shift, one.decision.resolution, comparison.groups.size(), comparison.options.resolve,
          Family::geometric_means, coarsest_group);
  for (const ComparedCase& one : comparison.cases)
    if (one.verdict == CaseVerdict::not_able_to_tell)
      add(one.times->shift, one.times->decision.resolution, timed, comparison.limit_of_cases(),
          Family::cases, coarsest_case);
  std::vector<std::string> ways;
  if (runs_help) ways.push_back(fmt::format("about {} runs of each side", runs));
  else ways.emplace_back("more runs of each side, as scripts/perf_gate takes");
  std::string coarser;
  if (coarsest_group > 0) coarser += " --resolve " + rounded_up(coarsest_group);
  if (coarsest_case > 0) coarser += " --resolve-case " + rounded_up(coarsest_case);
  if (std::max(coarsest_group, coarsest_case) <= kCoarsestLimit) ways.push_back(coarser.substr(1));
  return fmt::format("  remedy: {}\n", fmt::join(ways, ", or "));
}

// The cases of which the conclusion says nothing: those with results on a side, but not compared.
std::string not_compared(const Comparison& comparison) {
  std::vector<std::string> what;
  for (const CaseVerdict verdict :
       {CaseVerdict::missing, CaseVerdict::not_ok, CaseVerdict::fixed, CaseVerdict::added})
    if (const int count = comparison.count(verdict); count > 0)
      what.push_back(fmt::format("{} {}", count, to_string(verdict)));
  return what.empty() ? ""
                      : fmt::format("  of {} compared; not compared: {}\n",
                                    numbered(comparison.compared(), "case"), fmt::join(what, ", "));
}

// The verdict over everything, which the exit code repeats.
std::string conclusion(const Comparison& comparison) {
  const auto cases = [&](CaseVerdict verdict) { return comparison.count(verdict); };
  if (comparison.regression()) {
    std::vector<std::string> what;
    if (const int groups = comparison.count_groups(Change::slower); groups > 0)
      what.push_back(numbered(groups, "SLOWER geometric mean"));
    for (const CaseVerdict verdict : kVerdicts)
      if (comparison.fails(verdict) && cases(verdict) > 0)
        what.push_back(numbered(cases(verdict), fmt::format("{} case", to_string(verdict))));
    return fmt::format("REGRESSION: {}\n", fmt::join(what, ", "));
  }
  if (comparison.able_to_tell())
    return fmt::format(
               "no regression; slowdowns of {:g} % of a geometric mean, {:g} % of a case "
               "would have been seen\n",
               comparison.options.resolve * 100, comparison.limit_of_cases() * 100) +
           not_compared(comparison);
  const int groups = comparison.count_groups(Change::not_able_to_tell);
  const int unseen = cases(CaseVerdict::not_able_to_tell);
  if (groups + unseen == 0) return "NOT ABLE TO TELL: no case was timed on both sides\n";
  const double of_group = comparison.options.resolve, of_case = comparison.limit_of_cases();
  std::string limit = fmt::format("{:g} %", (groups > 0 ? of_group : of_case) * 100);
  if (groups > 0 && unseen > 0 && of_case != of_group)
    limit += fmt::format(" (of a case {:g} %)", of_case * 100);
  return fmt::format("NOT ABLE TO TELL: in {} and {} a slowdown of {} could go unseen\n",
                     numbered(groups, "geometric mean"), numbered(unseen, "case"), limit) +
         remedy(comparison);
}

Json json_of(const Shift& shift, const Decision& decision) {
  const auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  return {{"ratio", shift.ratio()},
          {"standard_error", finite(shift.standard_error)},
          {"degrees_of_freedom", shift.freedom},
          {"min_effect", shift.margin},
          {"p_slower", shift.p_slower()},
          {"p_faster", shift.p_faster()},
          {"p_same", shift.p_same()},
          {"smallest_seen", finite(decision.resolution)}};
}

}  // namespace

std::string format_comparison(const Comparison& comparison, bool all) {
  std::string text = case_lines(comparison, all) + group_lines(comparison);
  std::vector<std::string> counts;
  for (const CaseVerdict verdict : kVerdicts)
    if (const int count = comparison.count(verdict); count > 0)
      counts.push_back(fmt::format("{} {}", count, to_string(verdict)));
  text += fmt::format("{}\n", fmt::join(counts, ", "));
  text +=
      fmt::format("BASE: {} of {}; NEW: {} of {}\n", numbered(comparison.base_files.size(), "run"),
                  clip(printable_message(comparison.base_revision), 30),
                  numbered(comparison.new_files.size(), "run"),
                  clip(printable_message(comparison.new_revision), 30));
  text += fmt::format("minimum effect {:g} %, significance {:g}\n",
                      comparison.options.min_effect * 100, comparison.options.alpha);
  for (const std::string& note : comparison.notes)
    text += wrap(fmt::format("note: {}", note), kTableWidth, 4) + "\n";
  return text + conclusion(comparison);
}

Json to_json(const Comparison& comparison) {
  Json cases = Json::array(), groups = Json::array();
  for (const ComparedCase& one : comparison.cases) {
    const ResultRow& row = one.row;
    Json json = {{"matrix", {{"name", row.matrix.name}, {"sha256", row.matrix.sha256}}},
                 {"n", row.n},
                 {"kernel", row.kernel},
                 {"precision", row.precision},
                 {"c_type", row.c_type},
                 {"layout", row.layout},
                 {"reorder", row.reorder},
                 {"alpha", row.alpha},
                 {"beta", row.beta},
                 {"batch", row.batch},
                 {"verdict", to_string(one.verdict)},
                 {"reason", one.reason},
                 {"base_runs", one.base_runs},
                 {"new_runs", one.new_runs},
                 {"times", nullptr}};
    if (const auto& times = one.times) {
      json["times"] = {{"base_us", times->base_us}, {"new_us", times->new_us}};
      json["times"].update(json_of(times->shift, times->decision));
    }
    cases.push_back(std::move(json));
  }
  for (const ComparedGroup& group : comparison.groups) {
    groups.push_back({{"kind", group.kind},
                      {"name", group.name},
                      {"cases", group.cases},
                      {"verdict", to_string(group.decision.change)}});
    groups.back().update(json_of(group.shift, group.decision));
  }
  Json counts = Json::object();
  for (const CaseVerdict verdict : kVerdicts)
    counts[std::string(to_string(verdict))] = comparison.count(verdict);
  return {{"comparison_version", 2},
          {"base", {{"files", comparison.base_files}, {"git_revision", comparison.base_revision}}},
          {"new", {{"files", comparison.new_files}, {"git_revision", comparison.new_revision}}},
          {"times", comparison.options.cold ? "cold" : "hot"},
          {"alpha", comparison.options.alpha},
          {"min_effect", comparison.options.min_effect},
          {"resolve", comparison.options.resolve},
          {"resolve_case", comparison.limit_of_cases()},
          {"regression", comparison.regression()},
          {"able_to_tell", comparison.able_to_tell()},
          {"compared", comparison.compared()},
          {"counts", counts},
          {"notes", comparison.notes},
          {"groups", groups},
          {"cases", cases}};
}

}  // namespace spmmbench
