// How a comparison is shown: the table for people, JSON for programs.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "report/comparison.hpp"
#include "report/json.hpp"
#include "report/table.hpp"
#include "stats/quantiles.hpp"

namespace spmmbench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLabelWidth = 50;

constexpr CaseVerdict kVerdicts[] = {
    CaseVerdict::newly_wrong, CaseVerdict::slower,  CaseVerdict::faster, CaseVerdict::same,
    CaseVerdict::unclear,     CaseVerdict::missing, CaseVerdict::added,  CaseVerdict::fixed,
    CaseVerdict::not_ok,      CaseVerdict::skipped};

std::string clip(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 1) + "~";
}

// A long matrix name gives way to the kernel's.
std::string label_of(const ResultRow& row) {
  std::string rest = fmt::format(" n={} {} {}", row.n, row.precision, row.kernel);
  if (row.reorder != "none") rest += fmt::format(" [{}]", row.reorder);
  if (row.c_type != "fp32") rest += fmt::format(" C {}", row.c_type);
  if (row.layout != "row") rest += " column-major";
  constexpr std::size_t kShortestName = 12;
  const std::size_t room = kLabelWidth - std::min(rest.size(), kLabelWidth - kShortestName);
  return clip(clip(row.matrix.name, room) + rest, kLabelWidth);
}

std::string line_of(const ComparedCase& one) {
  std::string line = fmt::format("{:<{}} ", label_of(one.row), kLabelWidth);
  if (one.times)
    line += fmt::format("{:>10.2f} {:>10.2f} {:>8.3f}  {:<5.1f} ", one.times->base_us,
                        one.times->new_us, one.times->ratio, one.min_effect * 100);
  else line += fmt::format("{:>10} {:>10} {:>8}  {:<5} ", "-", "-", "-", "");
  line += to_string(one.verdict);
  if (!one.reason.empty()) line += fmt::format("\n    {}", clip(one.reason, kTableWidth - 4));
  return line + "\n";
}

// new / base, per kernel where there are several.
std::string geometric_means(const Comparison& comparison) {
  std::map<std::string, std::vector<double>> ratios;
  for (const ComparedCase& one : comparison.cases)
    if (one.times) ratios[one.row.precision + " " + one.row.kernel].push_back(one.times->ratio);
  if (!comparison.geometric_mean) return {};
  std::size_t cases = 0;
  for (const auto& [kernel, own] : ratios) cases += own.size();
  std::string text = fmt::format("new / base, geometric mean over {} cases: {:.4f}\n", cases,
                                 *comparison.geometric_mean);
  if (ratios.size() > 1)
    for (const auto& [kernel, own] : ratios)
      text += fmt::format("  {:<{}} {:>5} cases {:>8.4f}\n", clip(kernel, kLabelWidth - 2),
                          kLabelWidth - 2, own.size(), geometric_mean(own));
  return text;
}

std::string runs(std::size_t count) { return count == 1 ? "1 run" : fmt::format("{} runs", count); }

std::string where_min_effect_is_from(const ComparisonOptions& options) {
  if (options.min_effect) return "as given";
  return options.calibration ? "calibrated" : "default";
}

}  // namespace

std::string format_comparison(const Comparison& comparison, bool all) {
  std::string lines;
  for (const ComparedCase& one : comparison.cases)
    if (all || (one.verdict != CaseVerdict::same && one.verdict != CaseVerdict::skipped))
      lines += line_of(one);
  std::string text;
  if (!lines.empty())
    text = fmt::format("{:<{}} {:>10} {:>10} {:>8}  {:<5} verdict\n",
                       comparison.options.cold ? "case (cold times)" : "case (hot times)",
                       kLabelWidth, "base us", "new us", "new/base", "min %") +
           lines + "\n";
  text += geometric_means(comparison);
  std::vector<std::string> counts;
  for (const CaseVerdict verdict : kVerdicts)
    if (const int count = comparison.count(verdict); count > 0)
      counts.push_back(fmt::format("{} {}", count, to_string(verdict)));
  text += fmt::format("{}\n", fmt::join(counts, ", "));
  text += fmt::format("BASE: {} of {}; NEW: {} of {}\n", runs(comparison.base_files.size()),
                      clip(comparison.base_revision, 30), runs(comparison.new_files.size()),
                      clip(comparison.new_revision, 30));
  text += fmt::format("minimum effect {}, significance {}\n",
                      where_min_effect_is_from(comparison.options), comparison.options.alpha);
  for (const std::string& note : comparison.notes)
    text += clip(fmt::format("note: {}", note), kTableWidth) + "\n";
  return text;
}

Json to_json(const Comparison& comparison) {
  Json cases = Json::array();
  for (const ComparedCase& one : comparison.cases) {
    const ResultRow& row = one.row;
    Json json = {{"matrix", {{"name", row.matrix.name}, {"sha256", row.matrix.sha256}}},
                 {"n", row.n},
                 {"kernel", row.kernel},
                 {"precision", row.precision},
                 {"c_type", row.c_type},
                 {"layout", row.layout},
                 {"reorder", row.reorder},
                 {"verdict", to_string(one.verdict)},
                 {"reason", one.reason},
                 {"min_effect", one.min_effect},
                 {"base_runs", one.base_runs},
                 {"new_runs", one.new_runs},
                 {"times", nullptr}};
    if (const auto& t = one.times)
      json["times"] = {{"base_us", t->base_us},
                       {"new_us", t->new_us},
                       {"ratio", t->ratio},
                       {"p_slower", t->p_slower},
                       {"p_faster", t->p_faster},
                       {"p_same", t->p_same},
                       {"base_effective_samples", t->base_effective},
                       {"new_effective_samples", t->new_effective}};
    cases.push_back(std::move(json));
  }
  Json counts = Json::object();
  for (const CaseVerdict verdict : kVerdicts)
    counts[std::string(to_string(verdict))] = comparison.count(verdict);
  return {{"comparison_version", 1},
          {"base", {{"files", comparison.base_files}, {"git_revision", comparison.base_revision}}},
          {"new", {{"files", comparison.new_files}, {"git_revision", comparison.new_revision}}},
          {"times", comparison.options.cold ? "cold" : "hot"},
          {"alpha", comparison.options.alpha},
          {"min_effect_from", where_min_effect_is_from(comparison.options)},
          {"regression", comparison.regression()},
          {"geometric_mean", comparison.geometric_mean ? Json(*comparison.geometric_mean) : Json()},
          {"counts", counts},
          {"notes", comparison.notes},
          {"cases", cases}};
}

}  // namespace spmmbench
