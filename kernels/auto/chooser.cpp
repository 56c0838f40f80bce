#include "auto/chooser.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "select/device_rates.hpp"
#include "select/rank.hpp"
#include "select/tune.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

PlanReport report_of(const Plan& plan, const Pick& pick, const Why* why) {
  PlanReport report = plan.report();
  report.pick = pick;
  if (why == nullptr) return report;
  report.pick->why = why->text();
  for (const auto& [name, value] : named_features(why->features))
    report.metrics["feature_" + name] = value;
  return report;
}

Why Chooser::ranked(const Shape& shape, const DeviceRates& rates, StageTimer& stages) {
  const MatrixFeatures& features = features_.get(stages, [this](StageTimer& cost) {
    const auto timed = cost.scope("choose");
    return features_of(a_, device_);
  });
  a_.features = &features;
  const DeviceModel model = device_model(device_.info(), rates);
  const Ranking ranking = {features, shape, a_.precision, model, limits_.calls};
  Why why{.features = features, .ranked = {}, .calls = limits_.calls, .refusal = {}};
  if (features.row_overlap == MatrixFeatures().row_overlap) {  // it was not looked at
    {
      const auto timed = stages.scope("choose");
      why.ranked = ranking.without_overlap(takes(shape.layout));
    }
    if (!why.ranked.empty()) return why;
    why.features.row_overlap = row_overlap_.get(stages, [this](StageTimer& cost) {
      const auto timed = cost.scope("choose");
      return row_overlap_of(*a_.a);
    });
  }
  const auto timed = stages.scope("choose");
  why.ranked = ranking.by_overlap(why.features.row_overlap);
  return why;
}

std::optional<Chosen> Chooser::choose_by_sizes(const Candidate& plain, const Shape& shape,
                                               StageTimer& stages) {
  // Ten times what a look takes; of 400 to 1,000 it hardly matters
  // (docs/decisions/selection-trials.md).
  constexpr double kLooksFromUs = 800;
  std::vector<Candidate> all;
  {
    const auto timed = stages.scope("choose");
    all = candidates_by_sizes(a_, shape, device_.info());
    if (std::ranges::find(all, plain.spec, &Candidate::spec) == all.end()) all.push_back(plain);
    // The copy of A is there or is made for all of them.
    const auto total_us = [&](const Candidate& one) {
      const double extra_ms = std::max(0.0, one.estimate.prepare_ms - plain.estimate.prepare_ms);
      return extra_ms * 1e3 + static_cast<double>(limits_.calls) * one.estimate.us;
    };
    std::ranges::stable_sort(all, {}, total_us);
    if (total_us(all.front()) >= kLooksFromUs) return std::nullopt;
  }
  std::string refusal;
  auto best = best_of(all, a_, shape, device_.info(), refusal);
  if (!best) return std::nullopt;
  Chosen out;
  out.bound = prepared_.bind(best->first, shape, stages);
  out.pick.kernel = best->first.spec.to_string();
  out.pick.why = "by the sizes of A alone: a look at it would take long beside so few calls";
  prepared_.keep(out.pick.kernel);
  return out;
}

// The best prediction that supports the problem, and from it on what may be measured.
std::pair<Choice, std::vector<Candidate>> Chooser::worth_running(Why& why, const Shape& shape,
                                                                 StageTimer& stages) {
  const auto timed = stages.scope("choose");
  auto best = best_of(why.ranked, a_, shape, device_.info(), why.refusal);
  if (!best) throw Error(fmt::format("auto: {}", why.refusal));
  std::vector<Candidate> candidates;
  for (std::size_t i = best->second; i < why.ranked.size(); ++i)
    if (candidates.empty() || limits_.calls == 0 ||
        worth_tuning(candidates[0].estimate, why.ranked[i].estimate, limits_.calls))
      candidates.push_back(why.ranked[i]);
  return {std::move(best->first), std::move(candidates)};
}

// Without a trial where none is worth it, but for a best prediction that cannot be prepared.
BoundPlan Chooser::fastest(const std::vector<Candidate>& candidates, const Choice& best,
                           const Shape& shape, StageTimer& stages, Pick& pick) {
  if (limits_.most < 2 || candidates.size() == 1) return prepared_.bind(best, shape, stages);
  if (!any_may_win(candidates, limits_.calls, shape.n)) {
    try {
      return prepared_.bind(best, shape, stages);
    } catch (const Unsupported&) {
    } catch (const OutOfMemory&) {
    }
  }
  return trials_.fastest(candidates, best, shape, stages, pick);
}

Chosen Chooser::choose(const Shape& shape, StageTimer& stages) {
  Chosen out;
  out.why = ranked(shape, rates_of(device_), stages);
  const auto [best, candidates] = worth_running(*out.why, shape, stages);
  out.pick.kernel = best.spec.to_string();
  out.bound = fastest(candidates, best, shape, stages, out.pick);
  prepared_.keep(out.pick.kernel);
  prepared_.free_unused();
  return out;
}

}  // namespace spmmbench
