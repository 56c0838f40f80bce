#include "auto/chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "auto/device_features.hpp"
#include "select/device_rates.hpp"
#include "select/rank.hpp"
#include "select/tune.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

// What calls have to take for a look at an A on the device, or on the host, to take a small part of
// it (docs/decisions/few-calls.md).
constexpr double kLooksFromUs = 2000, kLooksOnHostFromUs = 800;
// Measuring the rates of the device takes about as long as loading cuBLAS: so long have calls to
// take for that to be a small part of it, in microseconds.
constexpr double kMeasuresRatesFromUs = 3e6;
// Rows of this many nonzeros may share most of their columns with their neighbours, which a glance
// tells. A kernel of windows gains by that, the more the wider rows of B are.
constexpr double kLongRow = 12, kGlancesFromUs = 800, kGlancesAtWideFromUs = 350;
constexpr std::int64_t kWide = 32;  // columns of B

bool pays_to_glance(double total_us, const Product& of_sizes) {
  return of_sizes.f.mean_row >= kLongRow &&
         total_us >= (of_sizes.n >= kWide ? kGlancesAtWideFromUs : kGlancesFromUs);
}

// What products take at least, in microseconds for each nonzero, before row orders are compared by
// what returns from memory (docs/decisions/selection-trials.md).
constexpr double kThoroughFromUs = 0.7;

// The copy of A is there or is made for all: `plain` prepares nothing else.
double total_us(const Estimate& one, const Estimate& plain, std::int64_t calls) {
  const double extra_ms = one.prepare_ms - plain.prepare_ms;
  const double extra_us = extra_ms > 0 ? extra_ms * 1e3 + kStepUs : 0;
  return extra_us + static_cast<double>(calls) * one.us;
}

}  // namespace

PlanReport report_of(const Plan& plan, const Pick& pick, const Why* why) {
  PlanReport report = plan.report();
  report.pick = pick;
  if (why == nullptr) return report;
  report.pick->why = why->text();
  for (const auto& [name, value] : named_features(why->ranking.features))
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
  Why why;
  why.ranking = {features, shape, a_.precision, model, limits_.calls};
  if (features.row_overlap == MatrixFeatures().row_overlap) {  // it was not looked at
    {
      const auto timed = stages.scope("choose");
      why.ranked = why.ranking.without_overlap(takes(shape.layout));
    }
    if (!why.ranked.empty()) return why;
    why.ranking.features.row_overlap = row_overlap_.get(stages, [this](StageTimer& cost) {
      const auto timed = cost.scope("choose");
      return row_overlap_of(*a_.a);
    });
  }
  const auto timed = stages.scope("choose");
  why.ranked = why.ranking.by_overlap(why.ranking.features.row_overlap);
  return why;
}

bool Chooser::order_may_gain(const Shape& shape) const {
  const DenseView b = make_b_view(a_.k(), shape.n, shape.layout, storage_type(a_.precision));
  return a_.on_device != nullptr && b.bytes() > device_.info().l2_bytes / 2;
}

bool Chooser::thorough_pays(double products_us) const {
  return products_us >= kThoroughFromUs * static_cast<double>(a_.nnz());
}

void Chooser::be_thorough(bool thorough) {
  // Kernels that were not thorough have found less.
  if (thorough && !a_.thorough) prepared_.forget();
  a_.thorough = thorough;
}

std::optional<Chosen> Chooser::choose_for_few_calls(const Start& start, const Shape& shape,
                                                    StageTimer& stages) {
  const auto by_total = [&](const Candidate& one) {
    return total_us(one.estimate, start.candidate.estimate, limits_.calls);
  };
  if (by_total(start.candidate) < kNothingPaysUs) return run(start.choice, shape, stages);
  std::vector<Candidate> all;
  {
    const auto timed = stages.scope("choose");
    all = candidates_by_sizes(start);
    std::ranges::stable_sort(all, {}, by_total);
  }
  const double by_sizes_us = by_total(all.front());
  const bool on_device = a_.on_device != nullptr;
  if (by_sizes_us >= (on_device ? kLooksFromUs : kLooksOnHostFromUs)) return std::nullopt;
  std::optional<Why> why;
  if (on_device && pays_to_glance(by_sizes_us, start.of_sizes)) {
    Product product = start.of_sizes;
    product.f = glance(stages);
    const auto timed = stages.scope("choose");
    all = candidates_on_device(product);
    std::ranges::stable_sort(all, {}, by_total);
    why = Why{{product.f, shape, product.precision, product.device, limits_.calls}, all, {}};
  }
  Chosen out = run(first_supported(all, start, shape), shape, stages);
  out.why = std::move(why);
  return out;
}

Chosen Chooser::run(const Choice& choice, const Shape& shape, StageTimer& stages) {
  Chosen out;
  out.bound = prepared_.bind(choice, shape, stages);
  out.pick.kernel = choice.spec.to_string();
  out.pick.why = "by the sizes of A alone: a look at it would take long beside so few calls";
  prepared_.keep(out.pick.kernel);
  return out;
}

Choice Chooser::first_supported(const std::vector<Candidate>& candidates, const Start& start,
                                const Shape& shape) const {
  for (const Candidate& one : candidates)
    if (auto choice = early_choice(one, start, a_, shape, device_.info()))
      return *std::move(choice);
  return start.choice;
}

const MatrixFeatures& Chooser::glance(StageTimer& stages) {
  const MatrixFeatures& features = glance_.get(stages, [this](StageTimer& cost) {
    const auto timed = cost.scope("choose");
    return features_at_a_glance(*a_.on_device, device_);
  });
  if (a_.features == nullptr) a_.features = &features;  // a whole look knows more
  return features;
}

// The best prediction that supports the problem, and from it on what may be measured.
std::pair<Choice, std::vector<Candidate>> Chooser::worth_running(Why& why, const Shape& shape,
                                                                 StageTimer& stages) {
  const auto timed = stages.scope("choose");
  auto best = best_of(why.ranked, a_, shape, device_.info(), why.refusal);
  if (!best) throw Error(fmt::format("auto: {}", why.refusal));
  std::vector<Candidate> candidates;
  // Where A lies on the device, candidates that are prepared there need no copy of it.
  const Ranking& by = why.ranking;
  const bool is_there = a_.on_device != nullptr;
  const double there_ms =
      is_there ? prepare_amounts::copy_of_a_ms(Product(by.features, shape, by.precision, by.device))
               : 0;
  for (std::size_t i = best->second; i < why.ranked.size(); ++i) {
    Candidate one = why.ranked[i];
    if (one.on_device) one.estimate.prepare_ms = std::max(0.0, one.estimate.prepare_ms - there_ms);
    candidates.push_back(one);
  }
  // If any is worth measuring beside the best, all compete with what the best takes.
  const auto is_worth_tuning = [&](const Candidate& one) {
    return worth_tuning(candidates[0].estimate, one.estimate, limits_.calls, shape.n);
  };
  if (limits_.calls > 0 && std::none_of(candidates.begin() + 1, candidates.end(), is_worth_tuning))
    candidates.resize(1);
  return {std::move(best->first), std::move(candidates)};
}

// Without a trial where none is worth it, but for a best prediction that cannot be prepared.
BoundPlan Chooser::fastest(const Ranking& ranking, const std::vector<Candidate>& candidates,
                           const Choice& best, StageTimer& stages, Pick& pick) {
  const Shape& shape = ranking.shape;
  if (limits_.most < 2 || candidates.size() == 1) return prepared_.bind(best, shape, stages);
  if (!any_may_win(candidates, limits_.calls, shape.n)) {
    try {
      return prepared_.bind(best, shape, stages);
    } catch (const Unsupported&) {
    } catch (const OutOfMemory&) {
    }
  }
  return trials_.fastest(ranking, candidates, best, stages, pick);
}

// Those of the device, measured unless this many calls take too little for that; else what is
// known.
DeviceRates Chooser::rates_worth_measuring(const std::optional<Start>& start) {
  if (limits_.calls == 0 || !start) return rates_of(device_);
  double least_us = std::numeric_limits<double>::infinity();
  for (const Candidate& one : candidates_by_sizes(*start))
    least_us = std::min(least_us, total_us(one.estimate, start->candidate.estimate, limits_.calls));
  return least_us < kMeasuresRatesFromUs ? known_rates(device_.info()) : rates_of(device_);
}

Chosen Chooser::choose(const Shape& shape, const std::optional<Start>& start, StageTimer& stages) {
  Chosen out;
  out.why = ranked(shape, rates_worth_measuring(start), stages);
  const auto [best, candidates] = worth_running(*out.why, shape, stages);
  out.pick.kernel = best.spec.to_string();
  out.bound = fastest(out.why->ranking, candidates, best, stages, out.pick);
  prepared_.keep(out.pick.kernel);
  prepared_.free_unused();
  return out;
}

}  // namespace spmmbench
