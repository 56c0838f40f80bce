#include "stats/compare.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "stats/multiple.hpp"
#include "stats/quantiles.hpp"
#include "stats/rank_test.hpp"
#include "stats/students_t.hpp"

namespace spmmbench {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRunLevel = 0.01;  // of the rank test over runs
constexpr double kPower = 0.9;
constexpr int kMostRuns = 100;

// Standard deviation of a run's level, relative. A smaller one is a timer's resolution, or luck.
constexpr double kLeastDeviation = 0.001;

// How far a case's level moved between two runs of one build on an H200: at most 12.6 % in 14,256
// pairs (216 cases of results/h200/repeated-runs.csv, all pairs of 12 runs); twice that.
constexpr double kUnseenCaseChange = 0.25;
// The same of a kernel's geometric mean over its cases: at most 1.2 % (the runs of results/h200
// that have cases in common); times 1.7.
constexpr double kUnseenMeanChange = 0.02;

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double squares_about_mean(std::span<const double> values) {
  if (values.empty()) return 0;
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares;
}

double freedom_of(std::span<const double> values) {
  return values.empty() ? 0 : static_cast<double>(values.size()) - 1;
}

// Is `other` larger than `base` by more than `margin`, one value per run?
bool runs_exceed(std::span<const double> base, std::span<const double> other, double margin) {
  std::vector<double> shifted(base.begin(), base.end());
  for (double& value : shifted) value += std::log1p(margin);
  const RankTest test = rank_test(shifted, other);
  return test.greater == 1 || test.p < kRunLevel;
}

// Of the logarithm of a run's median, as far as its own samples tell.
struct MedianVariance {
  double variance = kInfinity;
  double effective_samples = 0;
};

MedianVariance variance_of_median(const RunTimes& times) {
  const double effective = effective_size(times);
  const double noise = relative_noise(times);  // of as many independent samples
  return {noise * noise * static_cast<double>(times.size()) / effective, effective};
}

double combined(double margin, double unseen) { return (1 + margin) * (1 + unseen) - 1; }

double resolution_of(const Shift& shift, double p) {
  if (!std::isfinite(shift.standard_error)) return kInfinity;
  const double deviations =
      t_upper_quantile(p, shift.freedom) + t_upper_quantile(1 - kPower, shift.freedom);
  return std::expm1(std::log1p(shift.margin) + deviations * shift.standard_error);
}

Change change_of(const Shift& shift, bool slower, bool faster, double resolution, double alpha,
                 double limit) {
  if (slower && shift.runs_slower) return Change::slower;
  if (faster && shift.runs_faster) return Change::faster;
  if (!(resolution <= limit)) return Change::not_able_to_tell;
  return shift.p_same() < alpha ? Change::same : Change::unclear;
}

}  // namespace

RunLevels levels_of(std::span<const RunTimes> base, std::span<const RunTimes> fresh) {
  RunLevels levels;
  for (const RunTimes& run : base) levels.base.push_back(std::log(quantile(run, 0.5)));
  for (const RunTimes& run : fresh) levels.fresh.push_back(std::log(quantile(run, 0.5)));
  return levels;
}

double Shift::ratio() const { return std::exp(log_ratio); }

double Shift::p_slower() const {
  if (!std::isfinite(standard_error)) return 1;
  return t_upper_tail((log_ratio - std::log1p(margin)) / standard_error, freedom);
}

double Shift::p_faster() const {
  if (!std::isfinite(standard_error)) return 1;
  return t_upper_tail((-log_ratio - std::log1p(margin)) / standard_error, freedom);
}

double Shift::p_same() const {
  if (!std::isfinite(standard_error)) return 1;
  return std::max(1 - p_slower(), 1 - p_faster());
}

Shift shift_of_runs(const RunLevels& levels, double min_effect) {
  Shift shift;
  shift.log_ratio = mean_of(levels.fresh) - mean_of(levels.base);
  shift.margin = min_effect;
  double squares = 0;
  for (const std::vector<double>* runs : {&levels.base, &levels.fresh, &levels.repeats}) {
    squares += squares_about_mean(*runs);
    shift.freedom += freedom_of(*runs);
  }
  if (shift.freedom == 0) return unknown_shift(shift.log_ratio);
  shift.run_deviation = std::max(std::sqrt(squares / shift.freedom), kLeastDeviation);
  const auto base = static_cast<double>(levels.base.size());
  const auto fresh = static_cast<double>(levels.fresh.size());
  shift.standard_error = shift.run_deviation * std::sqrt(1 / base + 1 / fresh);
  shift.runs_slower = runs_exceed(levels.base, levels.fresh, min_effect);
  shift.runs_faster = runs_exceed(levels.fresh, levels.base, min_effect);
  return shift;
}

Shift shift_of_single_runs(const RunTimes& base, const RunTimes& fresh, double min_effect) {
  Shift shift;
  shift.log_ratio = std::log(quantile(fresh, 0.5) / quantile(base, 0.5));
  shift.margin = combined(min_effect, kUnseenCaseChange);
  const MedianVariance before = variance_of_median(base), after = variance_of_median(fresh);
  shift.freedom = before.effective_samples + after.effective_samples - 2;
  if (!std::isfinite(before.variance + after.variance) || shift.freedom < 1)
    return unknown_shift(shift.log_ratio);
  shift.standard_error = std::max(std::sqrt(before.variance + after.variance), kLeastDeviation);
  return shift;
}

Shift mean_shift_of_single_runs(std::span<const double> log_ratios, double min_effect) {
  Shift shift;
  shift.log_ratio = mean_of(log_ratios);
  shift.margin = combined(min_effect, kUnseenMeanChange);
  shift.freedom = freedom_of(log_ratios);
  if (shift.freedom == 0) return unknown_shift(shift.log_ratio);
  const double deviation = std::sqrt(squares_about_mean(log_ratios) / shift.freedom);
  shift.standard_error =
      std::max(deviation, kLeastDeviation) / std::sqrt(static_cast<double>(log_ratios.size()));
  return shift;
}

Shift unknown_shift(double log_ratio) {
  Shift shift;
  shift.log_ratio = log_ratio;
  shift.standard_error = kInfinity;
  shift.runs_slower = shift.runs_faster = false;
  return shift;
}

std::vector<Decision> decide(std::span<const Shift> shifts, double alpha, double limit,
                             Procedure procedure) {
  const auto rejected = [&](double (Shift::*p_of)() const) {
    std::vector<double> p;
    for (const Shift& shift : shifts) p.push_back((shift.*p_of)());
    return procedure == Procedure::holm ? holm(p, alpha) : benjamini_hochberg(p, alpha);
  };
  const std::vector<bool> slower = rejected(&Shift::p_slower), faster = rejected(&Shift::p_faster);
  std::vector<Decision> decisions;
  for (std::size_t i = 0; i < shifts.size(); ++i) {
    const double resolution = resolution_of(shifts[i], alpha / static_cast<double>(shifts.size()));
    decisions.push_back(
        {change_of(shifts[i], slower[i], faster[i], resolution, alpha, limit), resolution});
  }
  return decisions;
}

std::optional<int> runs_needed(const Shift& shift, double alpha, std::size_t hypotheses,
                               double limit) {
  if (shift.run_deviation == 0) return std::nullopt;
  for (int runs = 2; runs <= kMostRuns; ++runs) {
    Shift more = shift;
    more.freedom = 2.0 * (runs - 1);
    more.standard_error = shift.run_deviation * std::sqrt(2.0 / runs);
    if (resolution_of(more, alpha / static_cast<double>(hypotheses)) <= limit) return runs;
  }
  return std::nullopt;
}

}  // namespace spmmbench
