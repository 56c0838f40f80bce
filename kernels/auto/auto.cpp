// auto: ranks the kernels by their estimates, ours and the vendors' alike, measures those that are
// close to the best, and runs the fastest. src/select has the features of a matrix, the ranking and
// the worth of trials. PlanReport::pick has what was picked, estimated and measured.

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "auto/candidates.hpp"
#include "auto/trials.hpp"
#include "select/device_rates.hpp"
#include "select/rank.hpp"
#include "select/tune.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/shared_parts.hpp"

namespace spmmbench {
namespace {

class AutoPlan final : public Plan {
 public:
  AutoPlan(std::unique_ptr<Plan> plan, Pick pick, Why why)
      : plan_(std::move(plan)), pick_(std::move(pick)), why_(std::move(why)) {}

  void inspect_b(const DenseView& b, StageTimer& stages) override { plan_->inspect_b(b, stages); }
  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    plan_->launch(b, c, stream);
  }
  PlanReport report() const override {
    PlanReport report = plan_->report();
    report.pick = pick_;
    report.pick->why = why_.text();
    for (const auto& [name, value] : named_features(why_.features))
      report.metrics["feature_" + name] = value;
    return report;
  }

 private:
  std::unique_ptr<Plan> plan_;
  Pick pick_;
  Why why_;
};

const auto kCalls =
    integer_option<std::int64_t>("calls", 0, 0, 1'000'000'000'000,
                                 "count preparation as spread over this many calls; 0: ignore it");
const auto kTune =
    integer_option("tune", 8, 0, 8,
                   "measure up to so many of the best predictions on the device, where they are "
                   "close; 0 and 1: none");
const auto kBudgetMs =
    integer_option("budget_ms", 1000, 0, 1'000'000'000,
                   "of tune: begin no trial that is expected to end later; the first always runs");

class AutoPrepared final : public Prepared {
 public:
  AutoPrepared(const SparseOperand& a, const Options& options, Device& device, StageTimer& stages)
      : a_(a),
        device_(device),
        limits_{.most = kTune(options), .budget_ms = kBudgetMs(options), .calls = kCalls(options)},
        model_(device_model(device.info(), rates_of(device))) {
    const auto timed = stages.scope("choose");
    features_ = features_of(*a.a);
    a_.features = &features_;
  }

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    Why why = ranked(shape, stages);
    const auto [best, candidates] = worth_running(why, shape, stages);
    Pick pick = {.kernel = best.spec.to_string(), .measured_us = {}, .why = {}};
    std::unique_ptr<Plan> plan = limits_.most < 2 || candidates.size() == 1
                                     ? prepared_.bind(best, shape, stages)
                                     : trials_.fastest(candidates, best, shape, stages, pick);
    prepared_.keep(pick.kernel);
    prepared_.free_all_but(pick.kernel);
    return std::make_unique<AutoPlan>(std::move(plan), std::move(pick), std::move(why));
  }

 private:
  Why ranked(const Shape& shape, StageTimer& stages) {
    const Ranking ranking = {features_, shape, a_.precision, model_, limits_.calls};
    Why why{.features = features_, .ranked = {}, .calls = limits_.calls, .refusal = {}};
    {
      const auto timed = stages.scope("choose");
      why.ranked = ranking.without_overlap(takes(shape.layout));
    }
    if (!why.ranked.empty()) return why;
    why.features.row_overlap = row_overlap_.get(stages, [this](StageTimer& cost) {
      const auto timed = cost.scope("choose");
      return row_overlap_of(*a_.a);
    });
    const auto timed = stages.scope("choose");
    why.ranked = ranking.by_overlap(why.features.row_overlap);
    return why;
  }

  // The best prediction that supports the problem, and from it on what may be measured.
  std::pair<Choice, std::vector<Candidate>> worth_running(Why& why, const Shape& shape,
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

  SparseOperand a_;
  Device& device_;
  TrialLimits limits_;
  DeviceModel model_;
  MatrixFeatures features_;
  SharedPart<double> row_overlap_;
  PreparedKernels prepared_{a_, device_};
  Trials trials_{a_, device_, prepared_, limits_};
};

class Auto final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    const std::int64_t calls = kCalls(problem.options);
    std::string refusal = fmt::format("no kernel has an estimate for N = {}", problem.n);
    const Ranking ranking = {features_of(*problem.a), problem, problem.precision,
                             device_model(device, known_rates(device)), calls};
    std::vector<Candidate> all = ranking.without_overlap(takes(problem.layout));
    if (all.empty()) all = ranking.by_overlap(row_overlap_of(*problem.a));
    // The memory of the best prediction alone: a trial for which memory lacks is left out.
    const auto best = best_of(all, problem, problem, device, refusal);
    return best ? Support::yes(best->first.device_bytes) : Support::no(refusal);
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer& stages) const override {
    return std::make_unique<AutoPrepared>(a, options, device, stages);
  }

 private:
  KernelInfo info_ = {
      .name = "auto",
      .summary =
          "measures the kernels with the best predictions, vendors' included; runs the fastest",
      .source = "spmmbench",
      .precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16,
                     Precision::fp64},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_tensor_core,
      .writes_row_ids = true,
      .asks_for_rates = true,
      .options = {kCalls, kTune, kBudgetMs},
  };
};

SPMMBENCH_REGISTER_KERNEL(Auto);

}  // namespace
}  // namespace spmmbench
