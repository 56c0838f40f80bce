#include "stats/compare.hpp"

#include <algorithm>
#include <numeric>

#include "stats/quantiles.hpp"
#include "stats/rank_test.hpp"

namespace spmmbench {
namespace {

std::vector<double> scaled(std::span<const double> values, double factor) {
  std::vector<double> out(values.begin(), values.end());
  for (double& value : out) value *= factor;
  return out;
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

TimeComparison compare_times(std::span<const double> base_us, std::span<const double> new_us,
                             double margin) {
  TimeComparison result;
  result.base_us = quantile(base_us, 0.5);
  result.new_us = quantile(new_us, 0.5);
  result.ratio = result.new_us / result.base_us;
  result.base_effective = effective_size(base_us);
  result.new_effective = effective_size(new_us);
  const std::vector<double> upper = scaled(base_us, 1 + margin);
  const std::vector<double> lower = scaled(base_us, 1 / (1 + margin));
  const auto exceeds_base = [&](std::span<const double> base) {
    return rank_test(base, new_us, result.base_effective, result.new_effective).p;
  };
  const auto below_base = [&](std::span<const double> base) {
    return rank_test(new_us, base, result.new_effective, result.base_effective).p;
  };
  result.p_slower = exceeds_base(upper);
  result.p_faster = below_base(lower);
  result.p_same = std::max(below_base(upper), exceeds_base(lower));
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
    changes.push_back(is_slower[i]              ? Change::slower
                      : is_faster[i]            ? Change::faster
                      : cases[i].p_same < alpha ? Change::same
                                                : Change::unclear);
  return changes;
}

}  // namespace spmmbench
