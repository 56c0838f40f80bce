#include "report/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "core/contains.hpp"
#include "core/numbered.hpp"
#include "report/identity.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

// The rows of one case on one side, and the documents that they are of.
struct Side {
  std::vector<ResultRow> rows;
  std::vector<std::size_t> runs;

  std::size_t size() const { return rows.size(); }
};

struct Rows {
  Side base, fresh;
  bool on_cpu = false;  // in any run
  bool again = false;   // the further rows of a case that documents hold more than once
};

// Whether rows without a GPU are of a CPU. Documents older than `device_index` name no GPU in any
// row. A newer one in which no case ran on a GPU is known by a metric of cases on a CPU.
bool names_devices(const ResultDocument& document) {
  return document.context.device.kind == DeviceKind::host ||
         std::any_of(document.rows.begin(), document.rows.end(), [](const ResultRow& row) {
           return row.device_index || row.metrics.contains("preemptions_per_s");
         });
}

struct RunCounts {
  std::size_t base = 0, fresh = 0;
};

// What runs are asked for besides kernels and orders: a matrix, N and precision.
using Asked = std::tuple<std::string, std::int64_t, std::string>;

Asked asked_of(const ResultRow& row) { return {identity_of(row.matrix), row.n, row.precision}; }

// How many runs of each side should hold a case: those with any row of the same matrix, N and
// precision. A run without one was of something else, unless it ended early.
class ExpectedRuns {
 public:
  void add(const ResultDocument& document, std::size_t RunCounts::*side) {
    if (!document.complete) {
      ++(incomplete_.*side);
      return;
    }
    std::set<Asked> measured;
    for (const ResultRow& row : document.rows) measured.insert(asked_of(row));
    for (const Asked& one : measured) ++(complete_[one].*side);
  }
  RunCounts of(const ResultRow& row) const {
    const auto it = complete_.find(asked_of(row));
    const RunCounts complete = it == complete_.end() ? RunCounts{} : it->second;
    return {complete.base + incomplete_.base, complete.fresh + incomplete_.fresh};
  }

 private:
  std::map<Asked, RunCounts> complete_;
  RunCounts incomplete_;
};

const Timing* timing(const ResultRow& row, bool cold) {
  const std::optional<Timing>& chosen = cold ? row.cold : row.hot;
  return chosen ? &*chosen : nullptr;
}

std::vector<RunTimes> times_of(const Side& side, bool cold) {
  std::vector<RunTimes> times;
  times.reserve(side.size());
  for (const ResultRow& row : side.rows) times.push_back(timing(row, cold)->samples_us);
  return times;
}

bool timed(const ResultRow& row, bool cold) {
  const Timing* times = timing(row, cold);
  return row.status == Status::ok && times != nullptr && !times->samples_us.empty() &&
         std::all_of(times->samples_us.begin(), times->samples_us.end(),
                     [](double us) { return us > 0 && std::isfinite(us); });
}

// The runs whose times can be compared.
Side timed_runs(const Side& side, bool cold) {
  Side out;
  for (std::size_t i = 0; i < side.size(); ++i) {
    if (!timed(side.rows[i], cold)) continue;
    out.rows.push_back(side.rows[i]);
    out.runs.push_back(side.runs[i]);
  }
  return out;
}

const ResultRow* first_of(const Side& side, bool (*is)(const ResultRow&)) {
  const auto it = std::find_if(side.rows.begin(), side.rows.end(), is);
  return it == side.rows.end() ? nullptr : &*it;
}

bool broken(const ResultRow& row) {
  return row.status != Status::ok && row.status != Status::skipped;
}

bool exactly_right(const ResultRow& row) { return row.exact && row.exact->passed; }

bool not_exactly_right(const ResultRow& row) { return !exactly_right(row); }

bool wrong(const ResultRow& row) { return row.status == Status::wrong; }

bool skipped(const ResultRow& row) { return row.status == Status::skipped; }

// Whether a larger share of NEW's runs of the case is so than of BASE's.
bool more_often_in_new(const Rows& rows, bool (*is)(const ResultRow&)) {
  const auto count = [is](const Side& side) {
    return static_cast<std::size_t>(std::count_if(side.rows.begin(), side.rows.end(), is));
  };
  const std::size_t in_new = count(rows.fresh);
  return in_new > 0 &&
         in_new * std::max<std::size_t>(rows.base.size(), 1) > count(rows.base) * rows.fresh.size();
}

std::string status_and_reason(const ResultRow& row) {
  return fmt::format("{}: {}", to_string(row.status), row.reason);
}

double geometric_mean_us(const std::vector<double>& logarithms) {
  return std::exp(std::accumulate(logarithms.begin(), logarithms.end(), 0.0) /
                  static_cast<double>(logarithms.size()));
}

// `rows` are those that are timed.
CaseTimes compare_times(const std::string& key, const Rows& rows,
                        const ComparisonOptions& options) {
  const std::vector<RunTimes> base = times_of(rows.base, options.cold);
  const std::vector<RunTimes> fresh = times_of(rows.fresh, options.cold);
  CaseTimes out;
  out.runs = {rows.base.runs, rows.fresh.runs};
  out.levels = levels_of(base, fresh);
  if (options.calibration)
    for (const double us : options.calibration->medians_us(key))
      out.levels.repeats.push_back(std::log(us));
  out.base_us = geometric_mean_us(out.levels.base);
  out.new_us = geometric_mean_us(out.levels.fresh);
  out.shift = shift_of_runs(out.levels, options.min_effect);
  if (!out.levels.show_spread() && !rows.on_cpu)
    out.shift = shift_of_single_runs(base.front(), fresh.front(), options.min_effect);
  out.shift.on_cpu = rows.on_cpu;
  return out;
}

// Why NEW passed the exact test in a smaller share of its runs than BASE. Empty where it has not.
std::string untested_reason(const Rows& with_times, const RunCounts& expected) {
  const auto passed = [](const Side& side) {
    return static_cast<std::size_t>(
        std::count_if(side.rows.begin(), side.rows.end(), exactly_right));
  };
  if (passed(with_times.fresh) * expected.base >= passed(with_times.base) * expected.fresh)
    return {};
  const ResultRow* row = first_of(with_times.fresh, not_exactly_right);
  const bool says_why = row != nullptr && row->exact && !row->exact->not_made.empty();
  return "no exact test in NEW" + (says_why ? ": " + row->exact->not_made : "");
}

// Why NEW has times, or a passed exact test, in a smaller share of its runs than BASE. Empty where
// it has not.
std::string missing_reason(const Rows& all, const Rows& with_times, const RunCounts& expected) {
  if (all.fresh.rows.empty()) return "no row in NEW";
  if (with_times.fresh.size() * expected.base >= with_times.base.size() * expected.fresh)
    return untested_reason(with_times, expected);
  if (const ResultRow* row = first_of(all.fresh, skipped)) return status_and_reason(*row);
  if (with_times.fresh.size() < all.fresh.size()) return "no times in NEW";
  return fmt::format("in {} of {} of NEW", with_times.fresh.size(),
                     numbered(expected.fresh, "run"));
}

// What kept runs of a side out of a comparison: "6 of 7 runs of BASE: timeout: killed".
std::string left_out(const Side& all, const Side& with_times, const char* name) {
  if (all.size() == with_times.size()) return {};
  const auto is_out = [](const ResultRow& row) { return row.status != Status::ok; };
  const ResultRow* row = first_of(all, is_out);
  return fmt::format("{} of {} of {}: {}", with_times.size(), numbered(all.size(), "run"), name,
                     row == nullptr ? "no times in the others" : status_and_reason(*row));
}

// The verdict before times are compared. A case with times in some runs of both sides is compared
// by these: one run of BASE that failed must not hide what the others show.
void classify(ComparedCase& out, const Rows& all, const Rows& with_times,
              const RunCounts& expected) {
  const bool in_base = !with_times.base.rows.empty(), in_new = !with_times.fresh.rows.empty();
  if (const ResultRow* bad = first_of(all.fresh, broken)) {
    const bool is_new = more_often_in_new(all, broken) || more_often_in_new(all, wrong);
    const ResultRow* worst = first_of(all.fresh, wrong);
    out.verdict = is_new ? CaseVerdict::newly_wrong : CaseVerdict::not_ok;
    out.reason = status_and_reason(worst == nullptr ? *bad : *worst);
  } else if (in_base) {
    out.reason = missing_reason(all, with_times, expected);
    out.verdict = out.reason.empty() ? CaseVerdict::unclear : CaseVerdict::missing;
    if (!out.reason.empty()) return;
    out.reason = left_out(all.base, with_times.base, "BASE");
    const std::string of_new = left_out(all.fresh, with_times.fresh, "NEW");
    if (!out.reason.empty() && !of_new.empty()) out.reason += "; ";
    out.reason += of_new;
  } else if (in_new) {
    out.verdict = first_of(all.base, broken) != nullptr ? CaseVerdict::fixed : CaseVerdict::added;
  } else {
    out.verdict = CaseVerdict::skipped;
  }
}

ComparedCase compare_case(const std::string& key, const Rows& rows, const ExpectedRuns& expected,
                          const ComparisonOptions& options) {
  ComparedCase out;
  out.row = rows.fresh.rows.empty() ? rows.base.rows.front() : rows.fresh.rows.front();
  for (std::optional<Timing>* times : {&out.row.hot, &out.row.cold})
    if (*times) (*times)->samples_us.clear();
  out.base_runs = static_cast<int>(rows.base.size());
  out.new_runs = static_cast<int>(rows.fresh.size());
  const Rows with_times = {timed_runs(rows.base, options.cold),
                           timed_runs(rows.fresh, options.cold), rows.on_cpu};
  classify(out, rows, with_times, expected.of(out.row));
  const bool lets_pass = options.allow_missing && (out.verdict == CaseVerdict::missing ||
                                                   out.verdict == CaseVerdict::not_ok);
  const bool on_both = !with_times.base.rows.empty() && !with_times.fresh.rows.empty();
  if (out.verdict == CaseVerdict::unclear || (lets_pass && on_both))
    out.times = compare_times(key, with_times, options);
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

void judge_times(Comparison& comparison) {
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
  comparison.groups = compare_groups(comparison.cases, comparison.options);
}

void note_single_runs(const std::vector<ComparedCase>& cases, std::vector<std::string>& notes) {
  for (const bool on_cpu : {true, false}) {
    const auto count = std::count_if(cases.begin(), cases.end(), [&](const ComparedCase& one) {
      return one.times && !one.times->levels.show_spread() && one.times->shift.on_cpu == on_cpu;
    });
    if (count > 0)
      notes.push_back(fmt::format(
          "{} on the {} {} one run of each side, which {}: give several, or a --calibration that "
          "has them",
          numbered(count, "case"), on_cpu ? "CPU" : "GPU", count == 1 ? "has" : "have",
          on_cpu ? "says nothing" : "shows only large changes"));
  }
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

// The rows of one side, each with those of its case.
void collect(std::vector<InputDocument>& side, Side Rows::*to, std::size_t RunCounts::*runs_of_side,
             std::map<std::string, Rows>& cases, ExpectedRuns& expected) {
  for (std::size_t run = 0; run < side.size(); ++run) {
    expected.add(side[run].document, runs_of_side);
    const bool without_gpu_is_cpu = names_devices(side[run].document);
    ComparisonKeys keys;
    for (ResultRow& row : side[run].document.rows) {
      const std::string key = keys.next(row);
      Rows& of_case = cases[key];
      of_case.again = key != case_key(row);
      of_case.on_cpu |= row.status == Status::ok && !row.device_index && without_gpu_is_cpu;
      Side& runs = of_case.*to;
      runs.rows.push_back(std::move(row));
      runs.runs.push_back(run);
    }
  }
}

// Sorts by verdict, and within a verdict from the fastest on.
void sort_cases(std::vector<ComparedCase>& cases) {
  std::stable_sort(cases.begin(), cases.end(), [](const ComparedCase& a, const ComparedCase& b) {
    const auto key = [](const ComparedCase& one) {
      const double faster = one.times ? -one.times->shift.log_ratio : 0.0;
      const MatrixSummary& matrix = one.row.matrix;
      return std::tuple(one.verdict, faster, std::string_view(matrix.name),
                        std::string_view(matrix.sha256), one.row.n);
    };
    return key(a) < key(b);
  });
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

int Comparison::compared() const {
  return static_cast<int>(std::count_if(
      cases.begin(), cases.end(), [](const ComparedCase& one) { return one.times.has_value(); }));
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
  return compared() > 0 && count(CaseVerdict::not_able_to_tell) == 0 &&
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
  if (std::string other = other_conditions(base, fresh); !other.empty())
    comparison.notes.push_back(std::move(other));

  std::map<std::string, Rows> cases;
  ExpectedRuns expected;
  collect(base, &Rows::base, &RunCounts::base, cases, expected);
  collect(fresh, &Rows::fresh, &RunCounts::fresh, cases, expected);
  const auto alone = std::erase_if(cases, [](const auto& one) {
    const Rows& rows = one.second;
    return rows.again && (rows.base.rows.empty() || rows.fresh.rows.empty());
  });
  if (alone > 0)
    comparison.notes.push_back(
        fmt::format("left out: {}, since only one side measures the case once more in its document",
                    numbered(alone, "row")));
  for (const auto& [key, rows] : cases)
    comparison.cases.push_back(compare_case(key, rows, expected, options));
  const bool any_common =
      std::any_of(comparison.cases.begin(), comparison.cases.end(),
                  [](const ComparedCase& one) { return one.base_runs > 0 && one.new_runs > 0; });
  if (!any_common && !cases.empty())
    throw Error(fmt::format("{} and {} have no case in common", comparison.base_files.front(),
                            comparison.new_files.front()),
                ExitCode::not_comparable);

  note_single_runs(comparison.cases, comparison.notes);
  const auto left_out = std::count_if(
      comparison.cases.begin(), comparison.cases.end(),
      [](const ComparedCase& one) { return one.times.has_value() && !one.reason.empty(); });
  if (left_out > 0)
    comparison.notes.push_back(fmt::format("{} compared without some of the runs: --all says why",
                                           numbered(left_out, "case")));

  judge_times(comparison);
  sort_cases(comparison.cases);
  return comparison;
}

}  // namespace spmmbench
