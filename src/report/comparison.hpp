#pragma once
// Compares two sets of result documents, case by case and kernel by kernel: the verdicts, and how
// they are shown.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/calibration.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/result.hpp"
#include "stats/compare.hpp"

namespace spmmbench {

// In the order shown.
enum class CaseVerdict {
  newly_wrong,  // wrong, failed or timed out in a larger share of NEW's runs than of BASE's
  slower,
  // ok in BASE; without times or a passed exact test in NEW, or with them in a smaller share of its
  // runs
  missing,
  not_ok,  // wrong, failed or timed out in NEW, and as often in BASE
  faster,
  fixed,             // ok in NEW; in no run of BASE, where some are wrong, failed or timed out
  not_able_to_tell,  // a slowdown that should be seen could have gone unseen
  unclear,           // no such slowdown, and yet not shown to be the same
  added,             // ok in NEW; no row in BASE, or skipped in all of its runs
  same,
  skipped,  // ok on neither side, and not broken in NEW
};
std::string_view to_string(CaseVerdict);
std::string_view to_string(Change);

struct CaseTimes {
  RunLevels levels;
  // The documents of BASE and of NEW that the levels are of.
  std::pair<std::vector<std::size_t>, std::vector<std::size_t>> runs;
  double base_us = 0, new_us = 0;  // geometric means of the runs' medians
  Shift shift;
  Decision decision;
};

struct ComparedCase {
  ResultRow row;  // of NEW, else of BASE; without samples
  CaseVerdict verdict = CaseVerdict::unclear;
  std::string reason;  // of what is wrong or missing, or of runs that were left out
  int base_runs = 0, new_runs = 0;
  std::optional<CaseTimes> times;  // when compared, by the runs of both sides that are timed
};

// The geometric mean over all cases of a device, over those of a family of kernels ("cusparse"), or
// over those of one kernel at one precision ("fp16 rsh"). Groups of one case are left out. Of
// groups with the same cases, the one of the smaller kind is kept.
struct ComparedGroup {
  std::string kind, name;  // "all", "family", "kernel"
  int cases = 0;
  Shift shift;
  Decision decision;
};

struct ComparisonOptions {
  bool cold = false;    // compare cold times instead of hot ones
  double alpha = 0.01;  // probability of any false SLOWER when nothing changed; of FASTER too
  double min_effect = kDefaultMinEffect;
  double resolve = kDefaultResolve;         // the slowdown that must not go unseen
  std::optional<double> resolve_case = {};  // the same for single cases, when it differs
  std::optional<Calibration> calibration = {};
  std::string calibration_path = {};
  bool allow_missing = false;  // lost and broken cases are no regression
  bool force = false;          // compare what is not comparable

  static constexpr double kDefaultMinEffect = 0.02;
  static constexpr double kDefaultResolve = 0.05;
};

struct InputDocument {
  std::string path;
  ResultDocument document;
};

struct Comparison {
  ComparisonOptions options;
  std::vector<std::string> base_files, new_files;
  std::string base_revision, new_revision;
  std::vector<ComparedCase> cases;    // sorted by verdict, then by ratio, largest first
  std::vector<ComparedGroup> groups;  // all, then families, then kernels
  std::vector<std::string> notes;     // what weakens the verdicts, each with its remedy

  int count(CaseVerdict verdict) const;
  int count_groups(Change change) const;
  int compared() const;  // cases whose times were compared; nothing is promised of the others
  bool fails(CaseVerdict verdict) const;  // whether a case with this verdict is a regression
  bool regression() const;
  bool able_to_tell() const;  // no case and no group is NOT ABLE TO TELL, and something was timed
  ExitCode exit_code() const;
  double limit_of_cases() const { return options.resolve_case.value_or(options.resolve); }
};

// The first field that keeps two runs from being compared or merged, with both values:
// "device.name differs: 'A' and 'B'". Empty when none does. `cold`: it is about cold times, too,
// and the size of the cache is one that does.
std::string difference(const RunContext& a, const RunContext& b, bool cold);

// Several documents of a side are repeated runs of the same build. Throws Error(not_comparable) for
// another device, seed, protocol or set of precisions, and when no case is common.
Comparison compare_documents(std::vector<InputDocument> base, std::vector<InputDocument> fresh,
                             const ComparisonOptions& options);

// Throws Error(not_comparable), naming files and field, unless forced. No side is empty.
void require_comparable(const std::vector<InputDocument>& base,
                        const std::vector<InputDocument>& fresh, const ComparisonOptions& options);

// What else differs between the runs, machine, flags and clocks: "the runs differ in ...". Empty
// where nothing does.
std::string other_conditions(const std::vector<InputDocument>& base,
                             const std::vector<InputDocument>& fresh);

// Whether `merge` wrote the document.
bool is_merged(const RunContext& context);

// Whether both documents have a measurement of the same run: the runs began at the same second with
// the same command on the same machine, or `merge` wrote one of the documents, and a case has the
// same samples.
bool share_a_measurement(const ResultDocument& a, const ResultDocument& b);

// The part of alpha for each of the two families of hypotheses: groups, and single cases.
double alpha_share(const ComparisonOptions& options);
// The groups of the cases that have times, judged.
std::vector<ComparedGroup> compare_groups(const std::vector<ComparedCase>& cases,
                                          const ComparisonOptions& options);

// At most 100 columns; cases that are SAME or skipped only with `all`.
std::string format_comparison(const Comparison& comparison, bool all);
nlohmann::ordered_json to_json(const Comparison& comparison);

}  // namespace spmmbench
