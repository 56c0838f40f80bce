#pragma once
// Two sets of result documents against each other, case by case: the verdicts, and how they are
// shown.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/calibration.hpp"
#include "spmmbench/result.hpp"
#include "stats/compare.hpp"

namespace spmmbench {

// In the order shown. Only the first two are regressions.
enum class CaseVerdict {
  newly_wrong,  // ok in BASE; wrong, failed or timed out in NEW
  slower,
  faster,
  fixed,    // the reverse of newly wrong
  unclear,  // too few or too noisy samples to tell
  missing,  // no row in NEW, or skipped there
  added,    // no row in BASE, or skipped there
  not_ok,   // on neither side
  same,
  skipped,  // on both sides
};
std::string_view to_string(CaseVerdict);

struct ComparedCase {
  ResultRow row;  // of NEW, else of BASE; without samples
  CaseVerdict verdict = CaseVerdict::unclear;
  std::string reason;     // of newly wrong ones
  double min_effect = 0;  // a fraction
  int base_runs = 0, new_runs = 0;
  std::optional<TimeComparison> times;  // when ok on both sides
};

struct ComparisonOptions {
  bool cold = false;    // compare cold times instead of hot ones
  double alpha = 0.01;  // probability of any false SLOWER, and of any false FASTER
  std::optional<double> min_effect = {};  // else from the calibration, else kDefaultMinEffect
  std::optional<Calibration> calibration = {};
  bool force = false;  // compare what is not comparable
};
inline constexpr double kDefaultMinEffect = 0.02;

struct InputDocument {
  std::string path;
  ResultDocument document;
};

struct Comparison {
  ComparisonOptions options;
  std::vector<std::string> base_files, new_files;
  std::string base_revision, new_revision;
  std::vector<ComparedCase> cases;       // sorted by verdict, then by ratio, largest first
  std::optional<double> geometric_mean;  // of new / base
  std::vector<std::string> notes;        // what weakens the verdicts, each with its remedy

  int count(CaseVerdict verdict) const;
  bool regression() const;
};

// What keeps two runs from being compared or merged: device, seed or protocol. Empty when nothing.
std::string difference(const RunContext& a, const RunContext& b);

// Several documents of a side are repeated runs of the same build. Throws Error(not_comparable) for
// another device, seed, protocol or set of precisions, and when no case is common.
Comparison compare_documents(std::vector<InputDocument> base, std::vector<InputDocument> fresh,
                             const ComparisonOptions& options);

// At most 100 columns; cases that are SAME or skipped only with `all`.
std::string format_comparison(const Comparison& comparison, bool all);
nlohmann::ordered_json to_json(const Comparison& comparison);

}  // namespace spmmbench
