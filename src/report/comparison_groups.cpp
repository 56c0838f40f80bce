// Cases pooled by kernel, by family of kernels, and all together.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "report/comparison.hpp"

namespace spmmbench {
namespace {

using Members = std::vector<const CaseTimes*>;

struct Pool {
  std::string kind, name;
  Members members;
};

// "cusparse" of "cusparse_csr_alg2", "async" of "async_bcsr?stages=2".
std::string family_of(const std::string& kernel) {
  return kernel.substr(0, kernel.find_first_of("_?"));
}

// Cases on a GPU and cases on a CPU are never pooled: other assumptions hold.
std::vector<Pool> pools_of(const std::vector<ComparedCase>& cases) {
  const auto on_cpu = [](const ComparedCase& one) { return one.times && one.times->shift.on_cpu; };
  const auto on_gpu = [](const ComparedCase& one) { return one.times && !one.times->shift.on_cpu; };
  const bool both = std::any_of(cases.begin(), cases.end(), on_cpu) &&
                    std::any_of(cases.begin(), cases.end(), on_gpu);
  std::map<std::pair<bool, std::string>, Pool> all, families, kernels;
  for (const ComparedCase& one : cases) {
    if (!one.times) continue;
    const bool cpu = one.times->shift.on_cpu;
    const auto add = [&](auto& pools, const char* kind, const std::string& name) {
      pools.try_emplace({cpu, name}, Pool{kind, name, {}})
          .first->second.members.push_back(&*one.times);
    };
    add(all, "all", both ? fmt::format("all cases on the {}", cpu ? "CPU" : "GPU") : "all cases");
    add(families, "family", family_of(one.row.kernel));
    add(kernels, "kernel", one.row.precision + " " + one.row.kernel);
  }
  std::vector<Pool> smallest_first;
  for (auto* pools : {&kernels, &families, &all})
    for (auto& [name, pool] : *pools) smallest_first.push_back(std::move(pool));

  std::vector<Pool> kept;
  std::set<Members> seen;
  for (Pool& pool : smallest_first)
    if (pool.members.size() > 1 && seen.insert(pool.members).second)
      kept.push_back(std::move(pool));
  const std::vector<std::string> order = {"all", "family", "kernel"};
  std::stable_sort(kept.begin(), kept.end(), [&](const Pool& a, const Pool& b) {
    return std::find(order.begin(), order.end(), a.kind) <
           std::find(order.begin(), order.end(), b.kind);
  });
  return kept;
}

// Cases can be averaged run by run where they are of the same runs, and have as many repeated runs
// in a calibration.
using Runs = std::pair<decltype(CaseTimes::runs), std::size_t>;

Runs runs_of(const CaseTimes& one) {
  // Ratios of single runs are averaged as such, whichever runs they are of.
  if (!one.levels.show_spread() && !one.shift.on_cpu) return {};
  return {one.runs, one.levels.repeats.size()};
}

std::vector<double> mean_levels(const Members& members, std::vector<double> RunLevels::*side) {
  std::vector<double> mean((members.front()->levels.*side).size(), 0);
  for (const CaseTimes* one : members)
    for (std::size_t run = 0; run < mean.size(); ++run)
      mean[run] += (one->levels.*side)[run] / static_cast<double>(members.size());
  return mean;
}

// The mean shift of cases with the same Runs.
Shift mean_shift(const Members& members, double min_effect) {
  const CaseTimes& first = *members.front();
  if (members.size() == 1) return first.shift;
  if (runs_of(first) != Runs{})
    return shift_of_runs(
        {mean_levels(members, &RunLevels::base), mean_levels(members, &RunLevels::fresh),
         mean_levels(members, &RunLevels::repeats)},
        min_effect);
  std::vector<double> log_ratios;
  for (const CaseTimes* one : members) log_ratios.push_back(one->shift.log_ratio);
  return mean_shift_of_single_runs(log_ratios, min_effect);
}

// The cases of which nothing is known are left out where others are known. They are NOT ABLE TO
// TELL themselves.
ComparedGroup compare_pool(const Pool& pool, double min_effect) {
  std::map<Runs, Members> by_runs;
  for (const CaseTimes* one : pool.members) by_runs[runs_of(*one)].push_back(one);
  std::vector<WeightedShift> known, all;
  for (const auto& [runs, members] : by_runs) {
    all.push_back({mean_shift(members, min_effect), static_cast<double>(members.size())});
    if (std::isfinite(all.back().shift.standard_error)) known.push_back(all.back());
  }
  const std::vector<WeightedShift>& parts = known.empty() ? all : known;
  double cases = 0;
  for (const WeightedShift& part : parts) cases += part.weight;
  return {pool.kind, pool.name, static_cast<int>(cases), mean_of_shifts(parts), Decision{}};
}

}  // namespace

double alpha_share(const ComparisonOptions& options) { return options.alpha / 2; }

std::vector<ComparedGroup> compare_groups(const std::vector<ComparedCase>& cases,
                                          const ComparisonOptions& options) {
  std::vector<ComparedGroup> groups;
  std::vector<Shift> shifts;
  for (const Pool& pool : pools_of(cases)) {
    groups.push_back(compare_pool(pool, options.min_effect));
    shifts.push_back(groups.back().shift);
  }
  const std::vector<Decision> decisions =
      decide(shifts, alpha_share(options), options.resolve, Family::geometric_means);
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].decision = decisions[i];
  return groups;
}

}  // namespace spmmbench
