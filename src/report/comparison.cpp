#include "report/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>

#include "core/contains.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

// The rows of one case, one per run and side.
struct Rows {
  std::vector<ResultRow> base, fresh;
};

// How many runs of each side hold a case, at most.
struct RunCounts {
  std::size_t base = 0, fresh = 0;
};

const Timing* timing(const ResultRow& row, bool cold) {
  const std::optional<Timing>& chosen = cold ? row.cold : row.hot;
  return chosen ? &*chosen : nullptr;
}

std::vector<RunTimes> times_of(const std::vector<ResultRow>& runs, bool cold) {
  std::vector<RunTimes> times;
  times.reserve(runs.size());
  for (const ResultRow& row : runs) times.push_back(timing(row, cold)->samples_us);
  return times;
}

bool broken(const ResultRow& row) {
  return row.status != Status::ok && row.status != Status::skipped;
}

bool timed(const ResultRow& row, bool cold) {
  const Timing* times = timing(row, cold);
  return row.status == Status::ok && times != nullptr && !times->samples_us.empty() &&
         std::all_of(times->samples_us.begin(), times->samples_us.end(),
                     [](double us) { return us > 0 && std::isfinite(us); });
}

bool all_timed(const std::vector<ResultRow>& runs, bool cold) {
  return !runs.empty() && std::all_of(runs.begin(), runs.end(),
                                      [&](const ResultRow& row) { return timed(row, cold); });
}

std::string status_and_reason(const ResultRow& row) {
  return fmt::format("{}: {}", to_string(row.status), row.reason);
}

double geometric_mean_us(const std::vector<double>& logarithms) {
  return std::exp(std::accumulate(logarithms.begin(), logarithms.end(), 0.0) /
                  static_cast<double>(logarithms.size()));
}

CaseTimes compare_times(const std::string& key, const Rows& rows, const ComparisonOptions& options,
                        bool on_cpu) {
  const std::vector<RunTimes> base = times_of(rows.base, options.cold);
  const std::vector<RunTimes> fresh = times_of(rows.fresh, options.cold);
  CaseTimes out;
  out.levels = levels_of(base, fresh);
  if (options.calibration)
    for (const double us : options.calibration->medians_us(key))
      out.levels.repeats.push_back(std::log(us));
  out.base_us = geometric_mean_us(out.levels.base);
  out.new_us = geometric_mean_us(out.levels.fresh);
  out.shift = shift_of_runs(out.levels, options.min_effect);
  const bool single_runs = out.shift.freedom == 0;
  if (single_runs && !on_cpu)  // other work on the machine changes times on a CPU by any amount
    out.shift = shift_of_single_runs(base.front(), fresh.front(), options.min_effect);
  return out;
}

// The reason why a case of BASE has no time in NEW.
std::string missing_reason(const Rows& rows, const RunCounts& usual, bool cold) {
  if (rows.fresh.empty()) return "no row in NEW";
  const auto skipped = std::find_if(rows.fresh.begin(), rows.fresh.end(), [](const ResultRow& row) {
    return row.status == Status::skipped;
  });
  if (skipped != rows.fresh.end()) return status_and_reason(*skipped);
  if (!all_timed(rows.fresh, cold)) return "no times in NEW";
  if (rows.fresh.size() < usual.fresh && rows.base.size() == usual.base)
    return fmt::format("in {} of {} runs of NEW", rows.fresh.size(), usual.fresh);
  return {};
}

// The verdict before times are compared.
void classify(ComparedCase& out, const Rows& rows, const RunCounts& usual, bool cold) {
  const auto bad = std::find_if(rows.fresh.begin(), rows.fresh.end(), broken);
  const bool base_ok = all_timed(rows.base, cold);
  if (bad != rows.fresh.end()) {
    out.verdict = base_ok ? CaseVerdict::newly_wrong : CaseVerdict::not_ok;
    out.reason = status_and_reason(*bad);
  } else if (base_ok) {
    out.reason = missing_reason(rows, usual, cold);
    out.verdict = out.reason.empty() ? CaseVerdict::unclear : CaseVerdict::missing;
  } else if (all_timed(rows.fresh, cold)) {
    const bool was_broken = std::any_of(rows.base.begin(), rows.base.end(), broken);
    out.verdict = was_broken ? CaseVerdict::fixed : CaseVerdict::added;
  } else {
    out.verdict = CaseVerdict::skipped;
  }
}

ComparedCase compare_case(const std::string& key, const Rows& rows, const RunCounts& usual,
                          const ComparisonOptions& options, bool on_cpu) {
  ComparedCase out;
  out.row = rows.fresh.empty() ? rows.base.front() : rows.fresh.front();
  for (std::optional<Timing>* times : {&out.row.hot, &out.row.cold})
    if (*times) (*times)->samples_us.clear();
  out.base_runs = static_cast<int>(rows.base.size());
  out.new_runs = static_cast<int>(rows.fresh.size());
  classify(out, rows, usual, options.cold);
  if (out.verdict == CaseVerdict::unclear) out.times = compare_times(key, rows, options, on_cpu);
  return out;
}

CaseVerdict verdict_of(Change change) {
  switch (change) {
    case Change::same: return CaseVerdict::same;
    case Change::faster: return CaseVerdict::faster;
    case Change::slower: return CaseVerdict::slower;
    case Change::unclear: return CaseVerdict::unclear;
    case Change::not_able_to_tell: return CaseVerdict::not_able_to_tell;
  }
  return CaseVerdict::unclear;
}

void judge_times(Comparison& comparison, bool on_cpu) {
  std::vector<Shift> shifts;
  for (const ComparedCase& one : comparison.cases)
    if (one.times) shifts.push_back(one.times->shift);
  const std::vector<Decision> decisions =
      decide(shifts, alpha_share(comparison.options), comparison.limit_of_cases(), Family::cases);
  auto decision = decisions.begin();
  for (ComparedCase& one : comparison.cases)
    if (one.times) {
      one.times->decision = *decision++;
      one.verdict = verdict_of(one.times->decision.change);
    }
  comparison.groups = compare_groups(comparison.cases, comparison.options, on_cpu);
}

void describe_side(const std::vector<InputDocument>& side, std::vector<std::string>& files,
                   std::string& revision, std::vector<std::string>& notes) {
  std::vector<std::string> revisions;
  for (const InputDocument& input : side) {
    files.push_back(input.path);
    const std::string& own = input.document.context.git_revision;
    if (!contains(revisions, own)) revisions.push_back(own);
    if (!input.document.complete)
      notes.push_back(
          fmt::format("{} is incomplete: finish it with run --resume", to_printable(input.path)));
  }
  revision = fmt::format("{}", fmt::join(revisions, ", "));
}

}  // namespace

std::string_view to_string(CaseVerdict verdict) {
  switch (verdict) {
    case CaseVerdict::newly_wrong: return "NEWLY WRONG";
    case CaseVerdict::slower: return "SLOWER";
    case CaseVerdict::missing: return "MISSING";
    case CaseVerdict::not_ok: return "NOT OK";
    case CaseVerdict::faster: return "FASTER";
    case CaseVerdict::fixed: return "fixed";
    case CaseVerdict::not_able_to_tell: return "NOT ABLE TO TELL";
    case CaseVerdict::unclear: return "UNCLEAR";
    case CaseVerdict::added: return "new";
    case CaseVerdict::same: return "SAME";
    case CaseVerdict::skipped: return "skipped";
  }
  return "?";
}

std::string_view to_string(Change change) { return to_string(verdict_of(change)); }

int Comparison::count(CaseVerdict verdict) const {
  return static_cast<int>(std::count_if(
      cases.begin(), cases.end(), [&](const ComparedCase& one) { return one.verdict == verdict; }));
}

int Comparison::count_groups(Change change) const {
  return static_cast<int>(
      std::count_if(groups.begin(), groups.end(),
                    [&](const ComparedGroup& one) { return one.decision.change == change; }));
}

bool Comparison::fails(CaseVerdict verdict) const {
  if (verdict == CaseVerdict::missing || verdict == CaseVerdict::not_ok)
    return !options.allow_missing;
  return verdict == CaseVerdict::slower || verdict == CaseVerdict::newly_wrong;
}

bool Comparison::regression() const {
  return count_groups(Change::slower) > 0 ||
         std::any_of(cases.begin(), cases.end(),
                     [&](const ComparedCase& one) { return fails(one.verdict); });
}

bool Comparison::able_to_tell() const {
  const bool any_timed = std::any_of(cases.begin(), cases.end(),
                                     [](const ComparedCase& one) { return one.times.has_value(); });
  return any_timed && count(CaseVerdict::not_able_to_tell) == 0 &&
         count_groups(Change::not_able_to_tell) == 0;
}

ExitCode Comparison::exit_code() const {
  if (regression()) return ExitCode::regression;
  return able_to_tell() ? ExitCode::ok : ExitCode::not_able_to_tell;
}

Comparison compare_documents(std::vector<InputDocument> base, std::vector<InputDocument> fresh,
                             const ComparisonOptions& options) {
  require_comparable(base, fresh, options);
  Comparison comparison;
  comparison.options = options;
  describe_side(base, comparison.base_files, comparison.base_revision, comparison.notes);
  describe_side(fresh, comparison.new_files, comparison.new_revision, comparison.notes);
  const bool on_cpu = base.front().document.context.device.kind == DeviceKind::host;
  if (std::max(base.size(), fresh.size()) == 1 && !options.calibration)
    comparison.notes.push_back(
        fmt::format("one run of each side {}: give several, or a --calibration",
                    on_cpu ? "says nothing on a CPU" : "shows only large changes"));

  std::map<std::string, Rows> cases;
  RunCounts usual;
  const auto collect = [&cases](std::vector<InputDocument>& side, std::vector<ResultRow> Rows::*to,
                                std::size_t& most) {
    for (InputDocument& input : side) {
      ComparisonKeys keys;
      for (ResultRow& row : input.document.rows) {
        std::vector<ResultRow>& rows = cases[keys.next(row)].*to;
        rows.push_back(std::move(row));
        most = std::max(most, rows.size());
      }
    }
  };
  collect(base, &Rows::base, usual.base);
  collect(fresh, &Rows::fresh, usual.fresh);
  for (const auto& [key, rows] : cases)
    comparison.cases.push_back(compare_case(key, rows, usual, options, on_cpu));
  const bool any_common =
      std::any_of(comparison.cases.begin(), comparison.cases.end(),
                  [](const ComparedCase& one) { return one.base_runs > 0 && one.new_runs > 0; });
  if (!any_common && !cases.empty())
    throw Error(fmt::format("{} and {} have no case in common", comparison.base_files.front(),
                            comparison.new_files.front()),
                ExitCode::not_comparable);

  judge_times(comparison, on_cpu);
  std::stable_sort(comparison.cases.begin(), comparison.cases.end(),
                   [](const ComparedCase& a, const ComparedCase& b) {
                     const auto key = [](const ComparedCase& one) {
                       const double faster = one.times ? -one.times->shift.log_ratio : 0.0;
                       const MatrixSummary& matrix = one.row.matrix;
                       return std::tuple(one.verdict, faster, std::string_view(matrix.name),
                                         std::string_view(matrix.sha256), one.row.n);
                     };
                     return key(a) < key(b);
                   });
  return comparison;
}

}  // namespace spmmbench
