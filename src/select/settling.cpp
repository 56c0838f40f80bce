#include "select/settling.hpp"

#include <algorithm>
#include <utility>

#include "select/tune.hpp"

namespace spmmbench {
namespace {

// The most that all preparation may have taken, over what products have, when a trial begins. Of
// 0.15 to 1 it loses least from 1,000 calls on (docs/decisions/selection-trials.md).
constexpr double kShareOfTrials = 0.3;
// How often preparation on the host has to pay (docs/decisions/selection-trials.md).
constexpr double kTimesOnHost = 2;

// What measuring a kernel beside one that takes `now_us` should save of each launch, where its time
// may be off its estimate by up to 0.4 of `now_us`, and is as likely anywhere between.
double expected_gain_us(double us, double now_us) {
  constexpr double kOff = kMayTakeLess - 1;
  const double most = std::max(0.0, kMayTakeLess - us / now_us);  // of now_us
  return now_us * most * most / (4 * kOff);
}

}  // namespace

Settling::Settling(std::vector<Candidate> candidates, std::size_t current, double before_us)
    : there_ms_(candidates[current].estimate.prepare_ms),
      candidates_(std::move(candidates)),
      current_(current),
      products_us_(before_us),
      before_us_(before_us) {
  for (const Candidate& one : candidates_) states_.push_back(state_of(one));
}

Settling::State Settling::state_of(const Candidate& candidate) const {
  const double prepare_ms = candidate.estimate.prepare_ms;
  const double extra_ms =
      candidate.on_device ? std::max(0.0, prepare_ms - there_ms_) : kTimesOnHost * prepare_ms;
  return {candidate.estimate.us, extra_ms * 1e3 + kStepUs};
}

void Settling::estimate_anew(std::vector<Candidate> candidates) {
  const std::vector<Candidate> before = std::exchange(candidates_, std::move(candidates));
  const std::vector<State> known = std::exchange(states_, {});
  const std::string_view launched = before[current_].spec;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    states_.push_back(state_of(candidates_[i]));
    if (candidates_[i].spec == launched) current_ = i;
    const auto same = std::ranges::find(before, candidates_[i].spec, &Candidate::spec);
    if (same == before.end()) continue;
    const State& old = known[same - before.begin()];
    states_.back().failed = old.failed;
    states_.back().measured = old.measured;
    if (old.measured) states_.back().us = old.us;
  }
}

double Settling::preparation_us(std::size_t i) const {
  const double us = states_[i].extra_us;
  if (expected_us_ <= 0 || spent_us_ <= expected_us_) return us;
  const double times_as_long = us * spent_us_ / expected_us_;
  if (!candidates_[i].on_device) return times_as_long;
  return std::min(times_as_long, us + (spent_us_ - expected_us_) / steps_);
}

void Settling::count(const Step& step, double spent_us) {
  const State& state = states_[step.candidate];
  spent_us_ += spent_us;
  ++steps_;
  if (step.candidate != current_) expected_us_ += state.extra_us;
  if (step.measure) expected_us_ += measure_ms(state.us) * 1e3;
}

bool Settling::may_try(std::size_t i) const {
  return i != current_ && !states_[i].measured && !states_[i].failed;
}

bool Settling::may_be_faster(std::size_t i) const {
  return may_try(i) && states_[i].us < kMayTakeLess * states_[current_].us;
}

// With those of the current candidate that would have taken what was spent before the first.
double Settling::as_launches(std::int64_t launches) const {
  return static_cast<double>(launches) + before_us_ / states_[current_].us;
}

std::optional<std::size_t> Settling::worth_building(double launches) const {
  if (states_[current_].measured) return std::nullopt;
  std::optional<std::size_t> best;
  double least = launches * states_[current_].us;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (!may_try(i) || candidates_[i].standing != Standing::full) continue;
    const double cost = preparation_us(i) + launches * states_[i].us;
    if (cost >= least) continue;
    least = cost;
    best = i;
  }
  return best;
}

std::optional<Settling::Step> Settling::worth_measuring(double launches) const {
  if (measured_ >= kMostTrials) return std::nullopt;
  const State& now = states_[current_];
  const double own_us = now.measured ? 0 : measure_ms(now.us) * 1e3;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (!may_be_faster(i)) continue;
    const double cost_us = own_us + preparation_us(i) + measure_ms(states_[i].us) * 1e3;
    if (cost_us > launches * expected_gain_us(states_[i].us, now.us)) continue;
    if (spent_us_ + cost_us > kShareOfTrials * products_us_) continue;
    return now.measured ? Step{i, true} : Step{current_, true};
  }
  return std::nullopt;
}

std::optional<Settling::Step> Settling::next_build(std::int64_t launches) {
  products_us_ = products_us(launches);
  launches_ = launches;
  const auto build = worth_building(as_launches(launches + 1));
  return build ? std::optional(Step{*build, false}) : std::nullopt;
}

std::optional<Settling::Step> Settling::next(std::int64_t launches) {
  if (const auto build = next_build(launches)) return build;
  return worth_measuring(as_launches(launches));
}

bool Settling::took(const Step& step, double spent_us, std::optional<double> us) {
  count(step, spent_us);
  State& state = states_[step.candidate];
  const bool faster = step.candidate == current_ || !us || *us < states_[current_].us;
  if (us) {
    state.us = *us;
    state.measured = true;
    ++measured_;
  }
  if (faster) current_ = step.candidate;
  return faster;
}

void Settling::failed(const Step& step, double spent_us) {
  count(step, spent_us);
  states_[step.candidate].failed = true;
  if (step.candidate == current_) measured_ = kMostTrials;  // no memory for a B and a C
}

bool Settling::settled() const {
  if (measured_ >= kMostTrials) return true;
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (may_be_faster(i)) return false;
  return true;
}

}  // namespace spmmbench
