#include "stats/compare.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "stats/multiple.hpp"
#include "stats/rank_test.hpp"
#include "stats/relabel.hpp"
#include "stats/students_t.hpp"
#include "timing/quantiles.hpp"

namespace spmmbench {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRunLevel = 0.01;  // of the rank test over runs
constexpr double kPower = 0.9;
constexpr int kMostRuns = 100;

// The least relative standard deviation of a run's level that is believed. A smaller one comes from
// the timer's resolution, or from luck.
constexpr double kLeastDeviation = 0.001;

// Twice the largest change of a case's level between two runs of one build on an H200: 12.6 % in
// 14,256 pairs (216 cases of results/h200/repeated-runs.csv, all pairs of 12 runs).
constexpr double kUnseenCaseChange = 0.25;
// The same for a kernel's geometric mean over its cases: 1.7 times the largest change, 1.2 %
// between runs on an H200 that have cases in common.
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

// The variance of the logarithm of a run's median, as far as the run's own samples show it.
struct MedianVariance {
  double variance = kInfinity;
  double effective_samples = 0;
};

MedianVariance variance_of_median(const RunTimes& times) {
  const double effective = effective_size(times);
  const double noise = relative_noise(times);  // if all samples were independent
  return {noise * noise * static_cast<double>(times.size()) / effective, effective};
}

double combined(double margin, double unseen) { return (1 + margin) * (1 + unseen) - 1; }

double seen_with(const Shift& shift, double margin, double t) {
  const double deviations = t + t_upper_quantile(1 - kPower, shift.freedom);
  return std::expm1(std::log1p(margin) + deviations * shift.standard_error);
}

double resolution_of(const Shift& shift, double p) {
  if (!std::isfinite(shift.standard_error)) return kInfinity;
  return seen_with(shift, shift.margin, t_upper_quantile(p, shift.freedom));
}

// A larger change than any seen between runs of one build. On a CPU there is none.
double level_margin(const Shift& shift) {
  return shift.on_cpu ? kInfinity : combined(shift.margin, kUnseenCaseChange);
}

bool has_runs(const Shift& shift) { return !shift.levels.base.empty(); }

double level_chance(const Shift& shift) {
  return chance_of_one_level_per_side(shift.levels.base.size(), shift.levels.fresh.size());
}

// What chance does: the t of every way to divide the runs of the cases that are not called changed.
// Where runs often take one of two levels, some of these divisions look like a change.
class Chance {
 public:
  void add(std::span<const double> ts, double weight) {
    for (const double t : ts) ways_.emplace_back(t, weight);
  }
  // The largest t first.
  void sort() { std::sort(ways_.begin(), ways_.end(), std::greater<>()); }
  // How many cases are expected at t or above.
  double expected(double t) const {
    double sum = 0;
    for (const auto& [other, weight] : ways_) {
      if (other < t) break;
      sum += weight;
    }
    return sum;
  }
  // The t above which at most this many cases are expected.
  double least_t(double most) const {
    double sum = 0;
    for (const auto& [t, weight] : ways_)
      if ((sum += weight) > most) return t;
    return 0;
  }

 private:
  std::vector<std::pair<double, double>> ways_;  // t and weight
};

struct Chances {
  Chance slower, faster;
  // How far these cases moved together, as a logarithm. It is no level of a single case.
  double together = 0;
};

Chances chances_of(const std::vector<const Shift*>& unchanged) {
  Chances out;
  if (unchanged.empty()) return out;
  std::vector<double> moved;
  moved.reserve(unchanged.size());
  for (const Shift* shift : unchanged) moved.push_back(shift->log_ratio);
  out.together = quantile(moved, 0.5);
  for (const Shift* shift : unchanged) {
    std::vector<double> fresh = shift->levels.fresh;
    for (double& level : fresh) level -= out.together;
    const Relabelled ways = relabel(shift->levels.base, fresh, {shift->margin, kLeastDeviation});
    out.slower.add(ways.slower, ways.weight);
    out.faster.add(ways.faster, ways.weight);
  }
  out.slower.sort();
  out.faster.sort();
  return out;
}

// The resolution of a case. A change must also stand out: among the other ways to divide runs, or
// on a GPU by its size.
double case_resolution(const Shift& shift, double p, double alpha, const Chance& chance) {
  const double tested = resolution_of(shift, p);
  if (!has_runs(shift) || !std::isfinite(tested)) return tested;
  double standing_out = seen_with(shift, level_margin(shift), 0);
  if (level_chance(shift) <= alpha)
    standing_out = std::min(
        standing_out, seen_with(shift, shift.margin, chance.least_t(alpha - level_chance(shift))));
  return std::max(tested, standing_out);
}

// Which of the candidates stay. The procedure steps up, as that of Benjamini and Hochberg: chance
// explains at most the share alpha of those that stay.
std::vector<bool> standing_out(std::span<const Shift> shifts, std::vector<bool> candidates,
                               const Chance& chance, const std::vector<double>& t, double alpha) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < shifts.size(); ++i)
    if (candidates[i] && has_runs(shifts[i])) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return t[a] > t[b]; });
  std::size_t standing = 0;
  double own = 0;
  for (std::size_t rank = 1; rank <= order.size(); ++rank) {
    own += level_chance(shifts[order[rank - 1]]);
    if (own + chance.expected(t[order[rank - 1]]) <= alpha * static_cast<double>(rank))
      standing = rank;
  }
  for (std::size_t rank = standing; rank < order.size(); ++rank)
    candidates[order[rank]] =
        std::abs(shifts[order[rank]].log_ratio) > std::log1p(level_margin(shifts[order[rank]]));
  return candidates;
}

Change change_of(const Shift& shift, bool slower, bool faster, double resolution, double alpha,
                 double limit) {
  if (slower) return Change::slower;
  if (faster) return Change::faster;
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

bool RunLevels::show_spread() const {
  return std::max({base.size(), fresh.size(), repeats.size()}) > 1;
}

double Shift::ratio() const { return std::exp(log_ratio); }

double Shift::t_slower() const { return (log_ratio - std::log1p(margin)) / standard_error; }

double Shift::t_faster() const { return (-log_ratio - std::log1p(margin)) / standard_error; }

double Shift::p_slower() const {
  return std::isfinite(standard_error) ? t_upper_tail(t_slower(), freedom) : 1;
}

double Shift::p_faster() const {
  return std::isfinite(standard_error) ? t_upper_tail(t_faster(), freedom) : 1;
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
  if (levels.repeats.empty()) shift.levels = levels;
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

// Student's t with the mean of the errors, and the least of their degrees of freedom, rejects no
// more often than each of them alone: the tail of the normal distribution is convex.
Shift mean_of_shifts(std::span<const WeightedShift> shifts) {
  double sum = 0;
  for (const auto& [shift, weight] : shifts) sum += weight;
  Shift mean;
  mean.freedom = kInfinity;
  mean.runs_slower = mean.runs_faster = false;
  double log_margin = 0;
  for (const auto& [shift, weight] : shifts) {
    const double share = weight / sum;
    mean.log_ratio += share * shift.log_ratio;
    mean.standard_error += share * shift.standard_error;
    mean.run_deviation += share * shift.run_deviation;
    log_margin += share * std::log1p(shift.margin);
    mean.freedom = std::min(mean.freedom, shift.freedom);
    mean.runs_slower |= shift.runs_slower;
    mean.runs_faster |= shift.runs_faster;
  }
  mean.margin = std::expm1(log_margin);
  return mean;
}

Shift unknown_shift(double log_ratio) {
  Shift shift;
  shift.log_ratio = log_ratio;
  shift.standard_error = kInfinity;
  shift.runs_slower = shift.runs_faster = false;
  return shift;
}

std::vector<Decision> decide(std::span<const Shift> shifts, double alpha, double limit,
                             Family family) {
  const auto rejected = [&](double (Shift::*p_of)() const, bool Shift::*runs_agree) {
    std::vector<double> p;
    for (const Shift& shift : shifts) p.push_back((shift.*p_of)());
    std::vector<bool> out = family == Family::cases ? benjamini_hochberg(p, alpha) : holm(p, alpha);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i] && shifts[i].*runs_agree;
    return out;
  };
  std::vector<bool> slower = rejected(&Shift::p_slower, &Shift::runs_slower);
  std::vector<bool> faster = rejected(&Shift::p_faster, &Shift::runs_faster);
  Chances chances;
  if (family == Family::cases) {
    std::vector<const Shift*> unchanged;
    for (std::size_t i = 0; i < shifts.size(); ++i)
      if (!slower[i] && !faster[i] && has_runs(shifts[i])) unchanged.push_back(&shifts[i]);
    chances = chances_of(unchanged);
    std::vector<double> t_slower, t_faster;
    for (const Shift& shift : shifts) {
      const double together = chances.together / shift.standard_error;
      t_slower.push_back(shift.t_slower() - together);
      t_faster.push_back(shift.t_faster() + together);
    }
    slower = standing_out(shifts, std::move(slower), chances.slower, t_slower, alpha);
    faster = standing_out(shifts, std::move(faster), chances.faster, t_faster, alpha);
  }
  std::vector<Decision> decisions;
  for (std::size_t i = 0; i < shifts.size(); ++i) {
    const double p = alpha / static_cast<double>(shifts.size());
    const double resolution = family == Family::cases
                                  ? case_resolution(shifts[i], p, alpha, chances.slower)
                                  : resolution_of(shifts[i], p);
    decisions.push_back(
        {change_of(shifts[i], slower[i], faster[i], resolution, alpha, limit), resolution});
  }
  return decisions;
}

std::optional<int> runs_needed(const Shift& shift, double alpha, std::size_t hypotheses,
                               double limit, Family family) {
  if (shift.run_deviation == 0) return std::nullopt;
  const double p = alpha / static_cast<double>(hypotheses);
  for (int runs = 2; runs <= kMostRuns; ++runs) {
    Shift more = shift;
    more.freedom = 2.0 * (runs - 1);
    more.standard_error = shift.run_deviation * std::sqrt(2.0 / runs);
    if (has_runs(shift)) more.levels = {std::vector<double>(runs), std::vector<double>(runs), {}};
    if ((family == Family::cases ? case_resolution(more, p, alpha, {}) : resolution_of(more, p)) <=
        limit)
      return runs;
  }
  return std::nullopt;
}

}  // namespace spmmbench
