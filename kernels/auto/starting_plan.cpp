#include "auto/starting_plan.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "core/steady_seconds.hpp"
#include "select/device_rates.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

// What is known of A without a look at its rows.
MatrixFeatures sizes_of(const SparseOperand& a) {
  MatrixFeatures sizes;
  sizes.rows = static_cast<double>(a.m());
  sizes.cols = static_cast<double>(a.k());
  sizes.nnz = static_cast<double>(a.nnz());
  sizes.mean_row = sizes.max_row = sizes.nnz / std::max(sizes.rows, 1.0);
  sizes.gathered_8 = sizes.gathered_16 = sizes.gathered_32 = 1;
  return sizes;
}

// Those that prepare nothing, ours first.
const std::vector<const Estimator*>& of_plain_csr() {
  static const std::vector<const Estimator*> found = [] {
    const auto info_of = [](const Estimator* one) -> const KernelInfo* {
      const Kernel* kernel = Registry<Kernel>::instance().find(one->spec);
      return kernel == nullptr ? nullptr : &kernel->info();
    };
    std::vector<const Estimator*> all;
    for (const auto& one : estimators())
      if (const KernelInfo* info = info_of(one.get()); info != nullptr && info->reads_plain_csr)
        all.push_back(one.get());
    std::stable_partition(all.begin(), all.end(),
                          [&](const auto* one) { return !info_of(one)->baseline; });
    return all;
  }();
  return found;
}

}  // namespace

std::optional<Start> start_of(const SparseOperand& a, const Shape& shape,
                              const DeviceInfo& device) {
  const MatrixFeatures sizes = sizes_of(a);
  const DeviceModel model = device_model(device, known_rates(device));
  std::string refusal;
  for (const Estimator* one : of_plain_csr()) {
    const auto estimate = one->estimate(Product(sizes, shape, a.precision, model));
    if (!estimate) continue;
    const Candidate candidate{one->spec, *estimate};
    if (auto choice = supported(candidate, a, shape, device, refusal))
      return Start{*std::move(choice), candidate};
  }
  return std::nullopt;
}

double looks_after_us(const SparseOperand& a) {
  // Choosing takes 0.02 to 0.2 ms on samples of A on the host (docs/kernels/auto.md), 0.15 to 0.3
  // ms where A is counted on the device, for which the host waits
  // (docs/decisions/selection-trials.md).
  constexpr double kOnHost = 100, kOnDevice = 400;
  return a.a.is_lazy() ? kOnDevice : kOnHost;
}

StartingPlan::StartingPlan(Chooser& chooser, Start start, const Shape& shape,
                           std::size_t copied_bytes, StageTimer& stages)
    : chooser_(chooser),
      start_(std::move(start)),
      shape_(shape),
      copied_bytes_(copied_bytes),
      bound_(chooser.prepared().bind(start_.choice, shape, stages)) {
  pick_.kernel = pick_.first = start_.choice.spec.to_string();
}

void StartingPlan::launch(const DenseView& b, const DenseView& c, Stream stream) {
  if (!settled_) {
    if (chooser_.device().is_capturing(stream)) {
      captured_ = true;
    } else {
      if (launches_ == due_) prepare_more();
      ++launches_;
    }
  }
  bound_.plan->launch(b, c, stream);
}

void StartingPlan::prepare_more() {
  due_ *= 2;
  if (!settling_) {
    const double products_us = static_cast<double>(launches_) * start_.candidate.estimate.us;
    if (products_us < looks_after_us(chooser_.a())) return;
    rank();
  }
  for (;;) {
    const auto step = settling_->next(launches_);
    if (!step) break;
    take(*step);
  }
  times_.reset();
  chooser_.prepared().free_unused();
  settled_ = settling_->settled();
}

void StartingPlan::rank() {
  StageTimer not_told;
  const DeviceInfo& device = chooser_.device().info();
  why_ = chooser_.ranked(shape_, known_rates(device), not_told);
  std::vector<Candidate> candidates = why_->ranked;
  auto own = std::ranges::find(candidates, start_.candidate.spec, &Candidate::spec);
  if (own == candidates.end()) own = candidates.insert(own, start_.candidate);
  const std::size_t at = own - candidates.begin();
  settling_.emplace(std::move(candidates), at);
}

void StartingPlan::take(const Settling::Step& step) {
  Device& device = chooser_.device();
  device.wait_idle();  // what products take is no part of what this takes
  const double start = steady_seconds();
  const auto spent_us = [start] { return (steady_seconds() - start) * 1e6; };
  try {
    const Candidate& candidate = settling_->candidate(step.candidate);
    BoundPlan other;  // than the current one
    if (step.candidate != settling_->current()) {
      const auto choice = supported(candidate, chooser_.a(), shape_, device.info(), why_->refusal);
      if (!choice) return settling_->failed(step, spent_us());
      StageTimer not_told;
      other = chooser_.prepared().bind(*choice, shape_, not_told);
      device.synchronize();
    }
    std::optional<double> us;
    if (step.measure) {
      if (!times_) times_.emplace(chooser_.a(), shape_, device);
      us = times_->of(other.plan ? *other.plan : *bound_.plan,
                      leader_us_ > 0 ? leader_us_ : candidate.estimate.us);
      pick_.measured_us.emplace_back(Spec::parse(candidate.spec).to_string(), *us);
    }
    if (!settling_->took(step, spent_us(), us)) return;
    leader_us_ = us.value_or(0);
    if (!other.plan) return;
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
  Chosen chosen = chooser_.choose(shape_, stages);
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
