// auto: ranks the kernels by their estimates, ours and the vendors' alike, measures those that are
// close to the best, and runs the fastest. Where it is told neither how many calls follow nor how
// many kernels to measure, it launches at once what needs no preparation, and does all this while
// it is launched (starting_plan.hpp). src/select has the features of a matrix, the ranking and the
// worth of trials. PlanReport::pick has what was picked, estimated and measured.

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "auto/candidates.hpp"
#include "auto/chooser.hpp"
#include "auto/early.hpp"
#include "auto/starting_plan.hpp"
#include "common/resident_csr.hpp"
#include "select/device_rates.hpp"
#include "select/rank.hpp"
#include "select/tune.hpp"
#include "spmmbench/picking.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/starts_at_once.hpp"

namespace spmmbench::auto_kernel {
namespace {

// A plan for which everything was prepared when it was bound.
class ChosenPlan final : public Plan {
 public:
  // `copied_bytes`: of A, for it.
  ChosenPlan(Chosen chosen, std::size_t copied_bytes)
      : chosen_(std::move(chosen)), copied_bytes_(copied_bytes) {}

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    chosen_.bound.plan->launch(b, c, stream);
  }
  PlanReport report() const override {
    PlanReport report =
        report_of(*chosen_.bound.plan, chosen_.pick, chosen_.why ? &*chosen_.why : nullptr);
    report.device_bytes += copied_bytes_;
    return report;
  }

 private:
  Chosen chosen_;
  std::size_t copied_bytes_;
};

const auto kCalls = auto_integer_option<std::int64_t>(
    "calls", 0, 1'000'000'000'000,
    "count preparation as spread over this many calls; 0: ignore it; auto: with tune 0, else "
    "prepare while the product is called");
const auto kTune = auto_integer_option(
    "tune", 0, kMostTrials,
    "measure up to so many of the best predictions on the device, where they are close, before the "
    "first call; 0 and 1: none; auto: with calls 8, else while the product is called");
const auto kBudgetMs =
    integer_option("budget_ms", 1000, 0, 1'000'000'000,
                   "of tune: begin no trial that is expected to end later; the first always runs");

// Each option is read once: what reading it checks takes as long as choosing among few kernels.
struct Wanted {
  std::optional<std::int64_t> calls;
  std::optional<int> tune;

  explicit Wanted(const Options& options) : calls(kCalls(options)), tune(kTune(options)) {}
  bool starts_at_once() const { return !calls && !tune; }
  bool may_be_few_calls() const { return calls.value_or(0) > 0 && !tune; }
};

class AutoPrepared final : public Prepared, public BindsPick {
 public:
  AutoPrepared(const SparseOperand& a, const Options& options, Device& device, StageTimer& stages)
      : device_(device), wanted_(options) {
    SparseOperand operand = a;
    if (wanted_.starts_at_once()) {
      resident_.emplace(a, device, stages);
      operand.on_device = &resident_->view();
    }
    chooser_.emplace(operand, device,
                     TrialLimits{.most = wanted_.tune.value_or(kMostTrials),
                                 .budget_ms = kBudgetMs(options),
                                 .calls = wanted_.calls.value_or(0)});
  }

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    const std::size_t copied_bytes = resident_ ? resident_->copied_bytes() : 0;
    auto start = start_of(chooser_->a(), shape, device_.info());
    if (start && wanted_.starts_at_once())
      return std::make_unique<StartingPlan>(*chooser_, *std::move(start), shape, *resident_,
                                            stages);
    if (start && wanted_.calls.value_or(0) > 0) seek_orders_if_it_pays(*start, shape);
    if (start && wanted_.may_be_few_calls())
      if (auto chosen = chooser_->choose_for_few_calls(*start, shape, stages))
        return std::make_unique<ChosenPlan>(*std::move(chosen), copied_bytes);
    return std::make_unique<ChosenPlan>(chooser_->choose(shape, start, stages), copied_bytes);
  }
  std::unique_ptr<Plan> bind_pick(const std::string& kernel, const Shape& shape,
                                  StageTimer& stages) override {
    const Spec spec = Spec::parse(kernel);
    const Choice choice{Registry<Kernel>::instance().find(spec.name), spec};
    Chosen chosen;
    chosen.bound = chooser_->prepared().bind(choice, shape, stages);
    chosen.pick.kernel = kernel;
    return std::make_unique<ChosenPlan>(std::move(chosen),
                                        resident_ ? resident_->copied_bytes() : 0);
  }

 private:
  void seek_orders_if_it_pays(const Start& start, const Shape& shape) {
    const double us = static_cast<double>(*wanted_.calls) * start.candidate.estimate.us;
    chooser_->be_thorough(chooser_->order_may_gain(shape) && chooser_->thorough_pays(us));
  }

  Device& device_;
  Wanted wanted_;
  std::optional<ResidentCsr> resident_;  // before what is prepared from it
  std::optional<Chooser> chooser_;
};

class Auto final : public Kernel, public StartsAtOnce {
 public:
  const KernelInfo& info() const override { return info_; }

  bool starts_at_once(const Options& options) const override {
    return Wanted(options).starts_at_once();
  }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    // An A that lies on the device alone is not looked at here.
    const Wanted wanted(problem.options);
    if (wanted.starts_at_once() || problem.a.is_lazy())
      if (const auto start = start_of(problem, problem, device))
        return Support::yes(start->choice.device_bytes);
    const std::int64_t calls = wanted.calls.value_or(0);
    std::string refusal = fmt::format("no kernel has an estimate for N = {}", problem.n);
    const Ranking ranking = {features_of(*problem.a), problem, problem.precision,
                             device_model(device, known_rates(device)), calls};
    std::vector<Candidate> all = ranking.without_overlap(takes(problem.layout));
    if (all.empty()) all = ranking.by_overlap(row_overlap_of(*problem.a));
    // The memory of the best prediction alone: a trial for which memory lacks is left out.
    const auto best = best_of(all, problem, problem, device, refusal);
    if (!best) return Support::no(refusal);
    const std::size_t copied = wanted.starts_at_once() ? resident_bytes(problem) : 0;
    return Support::yes(best->first.device_bytes + copied);
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer& stages) const override {
    return std::make_unique<AutoPrepared>(a, options, device, stages);
  }

 private:
  KernelInfo info_ = {
      .name = "auto",
      .summary =
          "starts at once; measures the kernels with the best predictions, vendors' included, "
          "while it is called, and runs the fastest",
      .source = "spmmbench",
      .precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16,
                     Precision::fp8_e4m3, Precision::fp8_e5m2, Precision::fp64},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_tensor_core,
      .writes_row_ids = true,
      .asks_for_rates = true,
      .prepares_on_device = true,
      .options = {kCalls, kTune, kBudgetMs},
  };
};

SPMMBENCH_REGISTER_KERNEL(Auto);

}  // namespace
}  // namespace spmmbench::auto_kernel
