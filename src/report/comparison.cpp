#include "report/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "spmmbench/error.hpp"
#include "stats/quantiles.hpp"

namespace spmmbench {
namespace {

// The rows of one case, one per run and side.
struct Rows {
  std::vector<ResultRow> base, fresh;
};

void require(bool holds, const std::string& message, bool force) {
  if (!holds && !force) throw Error(message, ExitCode::not_comparable);
}

void require_comparable(const std::vector<InputDocument>& base,
                        const std::vector<InputDocument>& fresh, const ComparisonOptions& options) {
  const InputDocument& first = base.front();
  const auto check = [&](const RunContext& context, const std::string& path) {
    const std::string what = difference(first.document.context, context);
    require(what.empty(), fmt::format("{} and {}: {}", first.path, path, what), options.force);
  };
  for (const auto* side : {&base, &fresh})
    for (const InputDocument& input : *side) check(input.document.context, input.path);
  if (options.calibration) check(options.calibration->context(), "the calibration");

  const auto precisions = [](const std::vector<InputDocument>& side) {
    std::set<std::string> found;
    for (const InputDocument& input : side)
      for (const ResultRow& row : input.document.rows) found.insert(row.precision);
    return found;
  };
  const std::set<std::string> before = precisions(base), after = precisions(fresh);
  for (const std::string& precision : before)
    require(after.contains(precision), fmt::format("precision {} is in BASE only", precision),
            options.force);
  for (const std::string& precision : after)
    require(before.contains(precision), fmt::format("precision {} is in NEW only", precision),
            options.force);
}

const Timing* timing(const ResultRow& row, bool cold) {
  const std::optional<Timing>& chosen = cold ? row.cold : row.hot;
  return chosen ? &*chosen : nullptr;
}

std::vector<RunTimes> times_of(const std::vector<ResultRow>& runs, bool cold) {
  std::vector<RunTimes> times;
  for (const ResultRow& row : runs) times.push_back(timing(row, cold)->samples_us);
  return times;
}

bool broken(const ResultRow& row) {
  return row.status != Status::ok && row.status != Status::skipped;
}

bool all_timed(const std::vector<ResultRow>& runs, bool cold) {
  return std::all_of(runs.begin(), runs.end(), [&](const ResultRow& row) {
    const Timing* timed = timing(row, cold);
    return row.status == Status::ok && timed != nullptr && !timed->samples_us.empty();
  });
}

double min_effect_of(const ComparisonOptions& options, const std::string& key, int runs) {
  if (options.min_effect) return *options.min_effect;
  return options.calibration ? options.calibration->min_effect(key, runs) : kDefaultMinEffect;
}

ComparedCase compare_case(const std::string& key, const Rows& rows,
                          const ComparisonOptions& options) {
  ComparedCase out;
  out.row = rows.fresh.empty() ? rows.base.front() : rows.fresh.front();
  for (std::optional<Timing>* timed : {&out.row.hot, &out.row.cold})
    if (*timed) (*timed)->samples_us.clear();
  out.base_runs = static_cast<int>(rows.base.size());
  out.new_runs = static_cast<int>(rows.fresh.size());
  out.min_effect = min_effect_of(options, key, std::max(1, std::min(out.base_runs, out.new_runs)));

  const auto bad = std::find_if(rows.fresh.begin(), rows.fresh.end(), broken);
  const bool base_ok = !rows.base.empty() && all_timed(rows.base, options.cold);
  const bool new_ok = !rows.fresh.empty() && all_timed(rows.fresh, options.cold);
  if (base_ok && bad != rows.fresh.end()) {
    out.verdict = CaseVerdict::newly_wrong;
    out.reason = fmt::format("{}: {}", to_string(bad->status), bad->reason);
  } else if (base_ok && new_ok) {
    out.times = compare_times(times_of(rows.base, options.cold), times_of(rows.fresh, options.cold),
                              out.min_effect);
  } else if (base_ok) {
    out.verdict = CaseVerdict::missing;
  } else if (new_ok) {
    const bool was_broken = std::any_of(rows.base.begin(), rows.base.end(), broken);
    out.verdict = was_broken ? CaseVerdict::fixed : CaseVerdict::added;
  } else {
    const bool any_broken = std::any_of(rows.base.begin(), rows.base.end(), broken) ||
                            std::any_of(rows.fresh.begin(), rows.fresh.end(), broken);
    out.verdict = any_broken ? CaseVerdict::not_ok : CaseVerdict::skipped;
  }
  return out;
}

CaseVerdict verdict_of(Change change) {
  switch (change) {
    case Change::same: return CaseVerdict::same;
    case Change::faster: return CaseVerdict::faster;
    case Change::slower: return CaseVerdict::slower;
    case Change::unclear: return CaseVerdict::unclear;
  }
  return CaseVerdict::unclear;
}

void judge_times(Comparison& comparison) {
  std::vector<TimeComparison> times;
  std::vector<double> ratios;
  for (const ComparedCase& one : comparison.cases)
    if (one.times) {
      times.push_back(*one.times);
      ratios.push_back(one.times->ratio);
    }
  const std::vector<Change> changes = decide(times, comparison.options.alpha);
  auto change = changes.begin();
  for (ComparedCase& one : comparison.cases)
    if (one.times) one.verdict = verdict_of(*change++);
  if (!ratios.empty()) comparison.geometric_mean = geometric_mean(ratios);
}

void describe_side(const std::vector<InputDocument>& side, std::vector<std::string>& files,
                   std::string& revision, std::vector<std::string>& notes) {
  for (const InputDocument& input : side) {
    files.push_back(input.path);
    const std::string& own = input.document.context.git_revision;
    if (revision.find(own) == std::string::npos) revision += (revision.empty() ? "" : ", ") + own;
    if (!input.document.complete)
      notes.push_back(fmt::format("{} is incomplete: finish it with run --resume", input.path));
  }
}

}  // namespace

std::string_view to_string(CaseVerdict verdict) {
  switch (verdict) {
    case CaseVerdict::newly_wrong: return "NEWLY WRONG";
    case CaseVerdict::slower: return "SLOWER";
    case CaseVerdict::faster: return "FASTER";
    case CaseVerdict::fixed: return "fixed";
    case CaseVerdict::unclear: return "UNCLEAR";
    case CaseVerdict::missing: return "missing";
    case CaseVerdict::added: return "new";
    case CaseVerdict::not_ok: return "not ok";
    case CaseVerdict::same: return "SAME";
    case CaseVerdict::skipped: return "skipped";
  }
  return "?";
}

int Comparison::count(CaseVerdict verdict) const {
  return static_cast<int>(std::count_if(
      cases.begin(), cases.end(), [&](const ComparedCase& one) { return one.verdict == verdict; }));
}

bool Comparison::regression() const {
  return count(CaseVerdict::slower) + count(CaseVerdict::newly_wrong) > 0;
}

std::string difference(const RunContext& a, const RunContext& b) {
  if (a.device.name != b.device.name || a.device.sm_count != b.device.sm_count)
    return fmt::format("devices differ: '{}' with {} processors and '{}' with {}", a.device.name,
                       a.device.sm_count, b.device.name, b.device.sm_count);
  if (a.seed != b.seed) return fmt::format("seeds differ: {} and {}", a.seed, b.seed);
  for (const auto& [key, value] : a.protocol) {
    const auto other = b.protocol.find(key);
    const bool sampling = key != "isolated";  // that is where a case runs, not how it is sampled
    if (sampling && other != b.protocol.end() && other->second != value)
      return fmt::format("{} differs: '{}' and '{}'", key, value, other->second);
  }
  return {};
}

Comparison compare_documents(std::vector<InputDocument> base, std::vector<InputDocument> fresh,
                             const ComparisonOptions& options) {
  require_comparable(base, fresh, options);
  Comparison comparison;
  comparison.options = options;
  describe_side(base, comparison.base_files, comparison.base_revision, comparison.notes);
  describe_side(fresh, comparison.new_files, comparison.new_revision, comparison.notes);
  const bool blind =
      std::min(base.size(), fresh.size()) == 1 && !options.calibration && !options.min_effect;
  const bool on_cpu = base.front().document.context.device.kind == DeviceKind::host;
  if (blind)
    comparison.notes.push_back(
        fmt::format("one run of a side {}; give several, or a --calibration",
                    on_cpu ? "says nothing on a CPU" : "does not show how far runs differ"));

  std::map<std::string, Rows> cases;
  const auto collect = [&cases](std::vector<InputDocument>& side,
                                std::vector<ResultRow> Rows::*to) {
    for (InputDocument& input : side)
      for (ResultRow& row : input.document.rows)
        (cases[comparison_key(row)].*to).push_back(std::move(row));
  };
  collect(base, &Rows::base);
  collect(fresh, &Rows::fresh);
  for (const auto& [key, rows] : cases)
    comparison.cases.push_back(compare_case(key, rows, options));
  const bool any_common =
      std::any_of(comparison.cases.begin(), comparison.cases.end(),
                  [](const ComparedCase& one) { return one.base_runs > 0 && one.new_runs > 0; });
  require(any_common || cases.empty(), "BASE and NEW have no case in common", false);

  judge_times(comparison);
  // What else a machine does moves a CPU's times by any amount between runs.
  for (ComparedCase& one : comparison.cases)
    if (blind && on_cpu &&
        (one.verdict == CaseVerdict::slower || one.verdict == CaseVerdict::faster))
      one.verdict = CaseVerdict::unclear;
  std::stable_sort(comparison.cases.begin(), comparison.cases.end(),
                   [](const ComparedCase& a, const ComparedCase& b) {
                     const auto key = [](const ComparedCase& one) {
                       return std::pair(one.verdict, one.times ? -one.times->ratio : 0.0);
                     };
                     return key(a) < key(b);
                   });
  return comparison;
}

}  // namespace spmmbench
