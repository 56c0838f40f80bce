#include "auto/starting_plan.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "auto/device_features.hpp"
#include "core/steady_seconds.hpp"
#include "select/device_rates.hpp"
#include "select/rank.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr std::int64_t kOftenIn = 4;  // a question for every quarter of the launches that were

// Where it is among the candidates, of which it becomes one.
std::size_t place_of(const Candidate& one, std::vector<Candidate>& candidates) {
  const std::size_t at =
      std::ranges::find(candidates, one.spec, &Candidate::spec) - candidates.begin();
  if (at == candidates.size()) candidates.push_back(one);
  return at;
}

}  // namespace

StartingPlan::StartingPlan(Chooser& chooser, Start start, const Shape& shape, const ResidentCsr& a,
                           StageTimer& stages)
    : chooser_(chooser),
      start_(std::move(start)),
      shape_(shape),
      copied_bytes_(a.copied_bytes()),
      upload_us_(a.upload_ms() * 1e3),
      bound_(chooser.prepared().bind(start_.choice, shape, stages)) {
  pick_.kernel = pick_.first = start_.choice.spec.to_string();
}

void StartingPlan::launch(const DenseView& b, const DenseView& c, Stream stream) {
  if (!settled_) {
    if (chooser_.device().is_capturing(stream)) {
      captured_ = true;
    } else {
      if (launches_ == due_) prepare_more(b, c);
      ++launches_;
    }
  }
  bound_.plan->launch(b, c, stream);
}

// Trials write their products to C before the launch that is due does.
void StartingPlan::prepare_more(const DenseView& b, const DenseView& c) {
  // Until A is looked at a question costs little, and waits for nothing that does not pay.
  due_ += why_ ? due_ : std::max<std::int64_t>(1, due_ / kOftenIn);
  if (spent_us() < kNothingPaysUs) return;
  chooser_.be_thorough(false);
  if (!settling_) rank_by_sizes();
  if (!why_ && settling_->products_us(launches_) >= kLooksAfterUs) look();
  TrialTimes times(b, c, chooser_.device());
  while (const auto step = why_ ? settling_->next(launches_) : settling_->next_build(launches_))
    take(*step, times);
  if (!why_) return;
  chooser_.prepared().free_unused();
  if (!chooser_.order_may_gain(shape_)) settled_ = settling_->settled();
  else if (chooser_.thorough_pays(settling_->products_us(launches_))) settle_if_it_can();
}

void StartingPlan::settle_if_it_can() {
  try {
    StageTimer not_told;
    settle(not_told);
  } catch (const Unsupported&) {
  } catch (const OutOfMemory&) {
  } catch (const std::bad_alloc&) {
  }
  settled_ = true;
}

// On the copy of A and on products, by the first estimate.
double StartingPlan::spent_us() const {
  return upload_us_ + static_cast<double>(launches_) * start_.candidate.estimate.us;
}

void StartingPlan::rank_by_sizes() {
  std::vector<Candidate> candidates = candidates_by_sizes(start_);
  const std::size_t at = place_of(start_.candidate, candidates);
  settling_.emplace(std::move(candidates), at, upload_us_);
}

void StartingPlan::look() {
  StageTimer not_told;
  why_ = chooser_.ranked(shape_, known_rates(chooser_.device().info()), not_told);
  std::vector<Candidate> candidates = why_->ranked;
  place_of(settling_->candidate(settling_->current()), candidates);
  settling_->estimate_anew(std::move(candidates));
}

void StartingPlan::estimate_in_order(const WcsrEstimate& windows) {
  knows_order_ = true;
  std::vector<Candidate> candidates = why_->ranked;
  why_->ranking.estimate_in_order(windows, candidates);
  place_of(settling_->candidate(settling_->current()), candidates);
  settling_->estimate_anew(std::move(candidates));
}

void StartingPlan::take(const Settling::Step& step, TrialTimes& times) {
  Device& device = chooser_.device();
  device.wait_idle();  // what products take is no part of what this takes
  const double start = steady_seconds();
  const auto spent_us = [start] { return (steady_seconds() - start) * 1e6; };
  try {
    const Candidate candidate = settling_->candidate(step.candidate);
    BoundPlan other;                      // than the current one
    std::optional<WcsrEstimate> windows;  // in an order that it made
    if (step.candidate != settling_->current()) {
      std::string refusal;
      const auto choice =
          supported(candidate, chooser_.a(), shape_, device.info(), why_ ? why_->refusal : refusal);
      if (!choice) return settling_->failed(step, spent_us());
      StageTimer not_told;
      other = chooser_.prepared().bind(*choice, shape_, not_told);
      device.synchronize();
      if (why_ && !knows_order_ && any_takes_order(why_->ranked))
        windows = windows_in_known_order(chooser_.a(), device, not_told);
    }
    std::optional<double> us;
    if (step.measure) {
      if (about_us_ == 0) about_us_ = candidate.estimate.us;
      us = times.of(other.plan ? *other.plan : *bound_.plan, about_us_);
      pick_.measured_us.emplace_back(Spec::parse(candidate.spec).to_string(), *us);
    }
    const bool is_faster = settling_->took(step, spent_us(), us);
    if (windows) estimate_in_order(*windows);
    if (!is_faster || !other.plan) return;
    pick_.kernel = Spec::parse(candidate.spec).to_string();
    run_from_now_on(std::move(other));
  } catch (const Unsupported&) {
    settling_->failed(step, spent_us());
  } catch (const OutOfMemory&) {
    settling_->failed(step, spent_us());
  } catch (const std::bad_alloc&) {
    settling_->failed(step, spent_us());
  }
  chooser_.prepared().free_unused();
}

void StartingPlan::run_from_now_on(BoundPlan bound) {
  BoundPlan before = std::exchange(bound_, std::move(bound));
  if (std::exchange(captured_, false)) captured_plans_.push_back(std::move(before));
}

void StartingPlan::settle(StageTimer& stages) {
  if (settled_) return;
  chooser_.device().wait_idle();
  chooser_.be_thorough(true);
  Chosen chosen = chooser_.choose(shape_, start_, stages);
  run_from_now_on(std::move(chosen.bound));
  chosen.pick.first = pick_.first;
  pick_ = std::move(chosen.pick);
  why_ = std::move(chosen.why);
  chooser_.prepared().free_unused();
  settled_ = true;
}

PlanReport StartingPlan::report() const {
  PlanReport report = report_of(*bound_.plan, pick_, why_ ? &*why_ : nullptr);
  report.device_bytes += copied_bytes_;
  return report;
}

}  // namespace spmmbench
