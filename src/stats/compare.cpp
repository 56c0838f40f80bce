#include "stats/compare.hpp"

#include <algorithm>
#include <initializer_list>
#include <numeric>

#include "stats/quantiles.hpp"
#include "stats/rank_test.hpp"

namespace spmmbench {
namespace {

constexpr double kRunLevel = 0.01;

RunTimes joined(std::span<const RunTimes> runs) {
  RunTimes all;
  for (const RunTimes& run : runs) all.insert(all.end(), run.begin(), run.end());
  return all;
}

// The share of the variance of ranks that lies between the runs of a side, from a one-way analysis
// of variance over both sides. 0 where no side has two runs, or no run two samples.
double intraclass_correlation(std::initializer_list<std::span<const RunTimes>> sides) {
  double between = 0, within = 0, samples = 0, runs = 0;
  for (const std::span<const RunTimes> side : sides) {
    const std::vector<double> ranks = ranks_of(joined(side));
    const double centre = (static_cast<double>(ranks.size()) + 1) / 2;
    auto rank = ranks.begin();
    for (const RunTimes& run : side) {
      const auto end = rank + static_cast<std::ptrdiff_t>(run.size());
      const auto size = static_cast<double>(run.size());
      const double mean = std::accumulate(rank, end, 0.0) / size;
      between += size * (mean - centre) * (mean - centre);
      for (; rank != end; ++rank) within += (*rank - mean) * (*rank - mean);
    }
    samples += static_cast<double>(ranks.size());
    runs += static_cast<double>(side.size());
  }
  const double degrees_between = runs - static_cast<double>(sides.size());
  const double degrees_within = samples - runs;
  if (degrees_between <= 0 || degrees_within <= 0 || between == 0) return 0;
  const double mean_between = between / degrees_between, mean_within = within / degrees_within;
  const double correlation =
      (mean_between - mean_within) / (mean_between + (samples / runs - 1) * mean_within);
  return std::max(0.0, correlation);
}

double effective_samples(std::span<const RunTimes> runs, const RunTimes& all, double correlation) {
  const auto n = static_cast<double>(all.size());
  const double per_run = n / static_cast<double>(runs.size());
  return std::max(1.0, std::min(effective_size(all), n / (1 + (per_run - 1) * correlation)));
}

std::vector<double> medians(std::span<const RunTimes> runs) {
  std::vector<double> all;
  for (const RunTimes& run : runs) all.push_back(quantile(run, 0.5));
  return all;
}

std::vector<double> scaled(std::span<const double> values, double factor) {
  std::vector<double> out(values.begin(), values.end());
  for (double& value : out) value *= factor;
  return out;
}

// Is `other` larger than `base`, one value per run?
bool runs_exceed(const std::vector<double>& base, const std::vector<double>& other) {
  const auto n = static_cast<double>(base.size()), m = static_cast<double>(other.size());
  const RankTest test = rank_test(base, other, n, m);
  return test.greater == 1 || test.p < kRunLevel;
}

// Which hypotheses Holm's step-down procedure rejects.
std::vector<bool> holm(const std::vector<double>& p, double alpha) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<bool> rejected(p.size(), false);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (p[order[i]] >= alpha / static_cast<double>(order.size() - i)) break;
    rejected[order[i]] = true;
  }
  return rejected;
}

}  // namespace

TimeComparison compare_times(std::span<const RunTimes> base, std::span<const RunTimes> fresh,
                             double margin) {
  const RunTimes base_us = joined(base), new_us = joined(fresh);
  const double correlation = intraclass_correlation({base, fresh});
  TimeComparison result;
  result.base_us = quantile(base_us, 0.5);
  result.new_us = quantile(new_us, 0.5);
  result.ratio = result.new_us / result.base_us;
  result.base_effective = effective_samples(base, base_us, correlation);
  result.new_effective = effective_samples(fresh, new_us, correlation);
  const std::vector<double> upper = scaled(base_us, 1 + margin);
  const std::vector<double> lower = scaled(base_us, 1 / (1 + margin));
  const auto exceeds = [&](const RunTimes& base_times) {
    return rank_test(base_times, new_us, result.base_effective, result.new_effective).p;
  };
  const auto below = [&](const RunTimes& base_times) {
    return rank_test(new_us, base_times, result.new_effective, result.base_effective).p;
  };
  result.p_slower = exceeds(upper);
  result.p_faster = below(lower);
  result.p_same = std::max(below(upper), exceeds(lower));
  const std::vector<double> base_runs = medians(base), new_runs = medians(fresh);
  if (base.size() + fresh.size() > 2) {
    result.runs_slower = runs_exceed(scaled(base_runs, 1 + margin), new_runs);
    result.runs_faster = runs_exceed(new_runs, scaled(base_runs, 1 / (1 + margin)));
  }
  return result;
}

std::vector<Change> decide(std::span<const TimeComparison> cases, double alpha) {
  std::vector<double> slower, faster;
  for (const TimeComparison& one : cases) {
    slower.push_back(one.p_slower);
    faster.push_back(one.p_faster);
  }
  const std::vector<bool> is_slower = holm(slower, alpha), is_faster = holm(faster, alpha);
  std::vector<Change> changes;
  for (std::size_t i = 0; i < cases.size(); ++i)
    changes.push_back(is_slower[i] && cases[i].runs_slower   ? Change::slower
                      : is_faster[i] && cases[i].runs_faster ? Change::faster
                      : cases[i].p_same < alpha              ? Change::same
                                                             : Change::unclear);
  return changes;
}

}  // namespace spmmbench
