// auto: ranks the kernels by their estimates, ours and the vendors' alike, measures those that are
// close to the best, and runs the fastest. src/select has the features of a matrix, the ranking and
// the trials. The params of the result have what was picked, estimated and measured.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/contains.hpp"
#include "io/sha256.hpp"
#include "select/device_rates.hpp"
#include "select/rank.hpp"
#include "select/row_overlap.hpp"
#include "select/tune.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/shared_parts.hpp"
#include "timing/sampler.hpp"

namespace spmmbench {
namespace {

struct Choice {
  const Kernel* kernel = nullptr;
  Spec spec;
  std::size_t device_bytes = 0;  // predicted
};

Trial trial_of(const Candidate& candidate) {
  return {Spec::parse(candidate.spec).to_string(), candidate.estimate.us,
          candidate.estimate.prepare_ms};
}

// Whether this program was built with the kernel, and it takes the layout.
auto takes(Layout layout) {
  return [layout](std::string_view spec) {
    const Kernel* kernel = Registry<Kernel>::instance().find(Spec::parse(spec).name);
    return kernel != nullptr && contains(kernel->info().layouts, layout);
  };
}

double row_overlap_of(const CsrMatrix& a) {
  constexpr double kAllAlike = 0.999;  // 1 would say that it was not asked
  return std::min(row_overlap(a), kAllAlike);
}

// Empty if this program was built without the kernel, or if the kernel does not support the
// problem; `refusal` then says why.
std::optional<Choice> supported(const Candidate& candidate, const SparseOperand& a,
                                const Shape& shape, const DeviceInfo& device,
                                std::string& refusal) {
  Choice choice{nullptr, Spec::parse(candidate.spec), 0};
  choice.kernel = Registry<Kernel>::instance().find(choice.spec.name);
  if (choice.kernel == nullptr) return std::nullopt;
  const Support support =
      check_support(*choice.kernel, Problem{a, shape, choice.spec.options}, device);
  if (!support.ok) {
    refusal = fmt::format("{}: {}", choice.spec.name, support.reason);
    return std::nullopt;
  }
  choice.device_bytes = support.device_bytes;
  return choice;
}

// The best candidate that supports the problem, with its place among `all`. `refusal` is the reason
// of the last one that does not.
std::optional<std::pair<Choice, std::size_t>> best_of(const std::vector<Candidate>& all,
                                                      const SparseOperand& a, const Shape& shape,
                                                      const DeviceInfo& device,
                                                      std::string& refusal) {
  for (std::size_t i = 0; i < all.size(); ++i)
    if (auto choice = supported(all[i], a, shape, device, refusal))
      return std::pair(*std::move(choice), i);
  return std::nullopt;
}

// What was compared, for the report: choosing itself has to be fast.
struct Why {
  MatrixFeatures features;
  std::vector<Candidate> ranked;
  std::int64_t calls = 0;
  std::string refusal;

  // The features that decide most, and the best estimates in the order of their ranks.
  std::string text() const {
    constexpr std::size_t kNamed = 4;
    std::vector<std::string> expected;
    for (const auto& [name, estimate, standing] : ranked) {
      const Spec spec = Spec::parse(name);
      if (Registry<Kernel>::instance().find(spec.name) == nullptr) continue;
      expected.push_back(fmt::format("{} {:.1f} us", spec.to_string(), estimate.us));
      if (calls > 0) expected.back() += fmt::format(" after {:.1f} ms", estimate.prepare_ms);
      if (expected.size() == kNamed) break;
    }
    const std::string blocks = features.block_fill > 0 ? fmt::format(", 128x64 blocks {:.0f}% full",
                                                                     100 * features.block_fill)
                                                       : "";
    return fmt::format(
        "{:.1f} nonzeros per row (cv {:.1f}), 8-row windows gather {:.2f} per nonzero{}: expected "
        "{}{}",
        features.mean_row, features.cv_row, features.gathered_8, blocks, fmt::join(expected, ", "),
        refusal.empty() ? "" : "; refused: " + refusal);
  }
};

class AutoPlan final : public Plan {
 public:
  AutoPlan(std::unique_ptr<Plan> plan, std::map<std::string, std::string> params, Why why)
      : plan_(std::move(plan)), params_(std::move(params)), why_(std::move(why)) {}

  void inspect_b(const DenseView& b, StageTimer& stages) override { plan_->inspect_b(b, stages); }
  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    plan_->launch(b, c, stream);
  }
  PlanReport report() const override {
    PlanReport report = plan_->report();
    report.params.insert(params_.begin(), params_.end());
    report.params["why"] = why_.text();
    report.remembers = params_.contains("measured");
    for (const auto& [name, value] : named_features(why_.features))
      report.metrics["feature_" + name] = value;
    return report;
  }

 private:
  std::unique_ptr<Plan> plan_;
  std::map<std::string, std::string> params_;
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
        calls_(kCalls(options)),
        tune_(kTune(options)),
        budget_ms_(kBudgetMs(options)),
        model_(device_model(device.info(), rates_of(device))) {
    const auto timed = stages.scope("choose");
    features_ = features_of(*a.a);
    a_.features = &features_;
  }

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    const Ranking ranking = {features_, shape, a_.precision, model_, calls_};
    Why why{.features = features_, .ranked = {}, .calls = calls_, .refusal = {}};
    {
      const auto timed = stages.scope("choose");
      why.ranked = ranking.without_overlap(takes(shape.layout));
    }
    if (why.ranked.empty()) {
      why.features.row_overlap = row_overlap_.get(stages, [this](StageTimer& cost) {
        const auto timed = cost.scope("choose");
        return row_overlap_of(*a_.a);
      });
      const auto timed = stages.scope("choose");
      why.ranked = ranking.by_overlap(why.features.row_overlap);
    }
    std::map<std::string, std::string> params;
    std::unique_ptr<Plan> plan = fastest(why, shape, stages, params);
    picked_.insert(params.at("picked"));
    keep_only(params.at("picked"));
    return std::make_unique<AutoPlan>(std::move(plan), std::move(params), std::move(why));
  }

 private:
  std::unique_ptr<Plan> bind_one(const Choice& choice, const Shape& shape, StageTimer& stages) {
    auto found = prepared_.find(choice.spec.to_string());
    if (found == prepared_.end()) {
      StageTimer cost;
      std::unique_ptr<Prepared> prepared;
      try {
        prepared = choice.kernel->prepare(a_, choice.spec.options, device_, cost);
      } catch (...) {
        stages.add(cost);
        throw;
      }
      found = prepared_
                  .emplace(choice.spec.to_string(), PreparedA{std::move(prepared), std::move(cost)})
                  .first;
    }
    stages.add(found->second.cost);
    return found->second.a->bind(shape, stages);
  }

  // Frees what was prepared for trials, but for `name` and what a shape has picked.
  void keep_only(const std::string& name) {
    std::erase_if(prepared_, [&](const auto& one) {
      return one.first != name && !picked_.contains(one.first);
    });
  }

  // The plan of the best prediction, or of the fastest trial.
  std::unique_ptr<Plan> fastest(Why& why, const Shape& shape, StageTimer& stages,
                                std::map<std::string, std::string>& params) {
    std::vector<Candidate> candidates;  // the best, and what may be measured beside it
    std::optional<Choice> best;
    {
      const auto timed = stages.scope("choose");
      auto found = best_of(why.ranked, a_, shape, device_.info(), why.refusal);
      if (!found) throw Error(fmt::format("auto: {}", why.refusal));
      best = std::move(found->first);
      for (std::size_t i = found->second; i < why.ranked.size(); ++i)
        if (candidates.empty() || calls_ == 0 ||
            worth_tuning(candidates[0].estimate, why.ranked[i].estimate, calls_))
          candidates.push_back(why.ranked[i]);
    }
    params["picked"] = best->spec.to_string();
    if (tune_ < 2 || candidates.size() == 1) return bind_one(*best, shape, stages);
    StageTimer spent;
    std::unique_ptr<Plan> plan;
    try {
      plan = measured(candidates, cache_key(shape, stages), shape, stages, spent, params);
    } catch (const OutOfMemory&) {  // no trial had the memory for its B and C as well
      keep_only(params["picked"]);
      plan = bind_one(*best, shape, stages);
    }
    stages.add("tune", spent.total_ms());
    return plan;
  }

  // The times of one trial. `all` gets them at its end, also where it fails.
  struct TrialTimer : StageTimer {
    explicit TrialTimer(StageTimer& timer) : all(timer) {}
    TrialTimer(const TrialTimer&) = delete;
    TrialTimer& operator=(const TrialTimer&) = delete;
    ~TrialTimer() { all.add(*this); }
    StageTimer& all;
  };

  // Measures candidates on the device, the best prediction first, with a B and a C of their own,
  // and adds to `spent` what they take, as if nothing had been prepared before. A winner that is
  // remembered is only prepared.
  std::unique_ptr<Plan> measured(const std::vector<Candidate>& candidates, const CacheEntry& key,
                                 const Shape& shape, StageTimer& stages, StageTimer& spent,
                                 std::map<std::string, std::string>& params) {
    std::vector<Trial> trials;
    trials.reserve(candidates.size());
    for (const Candidate& candidate : candidates) trials.push_back(trial_of(candidate));
    std::unique_ptr<Plan> fastest;
    std::string leader, refusal;
    std::int64_t tried = 0;
    double leader_us = 0, least = std::numeric_limits<double>::infinity();
    const auto measure = [&](std::size_t i) -> std::optional<double> {
      if (tried == tune_ || (fastest && !worth_trying(candidates[0].estimate,
                                                      candidates[i].estimate, leader_us, calls_)))
        return std::nullopt;
      TrialTimer within(spent);
      const auto choice = supported(candidates[i], a_, shape, device_.info(), refusal);
      if (!choice) return std::nullopt;
      ++tried;
      keep_only(leader);
      std::unique_ptr<Plan> plan = bind_one(*choice, shape, within);
      const double prepare_ms = within.total_ms();
      const auto timed = within.scope("measure");
      const double us = time_us(*plan, shape);
      const double cost = cost_us(us, prepare_ms, calls_);
      if (cost < least) {
        least = cost;
        fastest = std::move(plan);
        leader = trials[i].name;
        leader_us = us;
      }
      return cost;
    };
    const Tuned tuned = tune(trials, measure, static_cast<double>(budget_ms_), key);
    device_.synchronize();
    if (tuned.remembered) {
      const auto choice = supported(candidates[tuned.picked], a_, shape, device_.info(), refusal);
      try {
        if (choice) fastest = bind_one(*choice, shape, stages);
      } catch (const OutOfMemory&) {  // there was enough when it was measured
      }
      if (!fastest) return measured(candidates, {}, shape, stages, spent, params);
    }
    params["picked"] = trials[tuned.picked].name;
    for (const auto& [i, us] : tuned.measured_us)
      params["measured"] += fmt::format("{}{} {:.1f} us{}", params["measured"].empty() ? "" : ", ",
                                        trials[i].name, us, calls_ > 0 ? " with preparation" : "");
    if (tuned.remembered) params["measured"] += " (remembered)";
    return fastest;
  }

  // As a run measures it when it is hot, but with fewer samples. The cache is flushed because some
  // kernels read A faster right after it was copied to the device (docs/kernels/auto.md).
  double time_us(Plan& plan, const Shape& shape) {
    constexpr SampleLimits kLimits = {.min_samples = 5, .max_samples = 5};
    constexpr SamplerOptions kSampler = {.warmup_us = 1000};
    constexpr std::uint64_t kSeed = 1;
    DenseView b = make_b_view(a_.k(), shape.n, shape.layout, storage_type(a_.precision));
    DenseView c = make_dense_view(a_.m(), shape.n, shape.layout, shape.c_type);
    const Buffer b_memory = device_.allocate(b.bytes()), c_memory = device_.allocate(c.bytes());
    b.data = b_memory.data();
    c.data = c_memory.data();
    device_.fill_uniform(b, kSeed, a_.precision);
    StageTimer within;
    plan.inspect_b(b, within);
    const auto launch = [&] { plan.launch(b, c, device_.stream()); };
    device_.flush_cache();
    const Timing timing = sample_hot(device_, launch, kLimits, kSampler, [] {});
    device_.synchronize();
    return timing.median_us;
  }

  // What a measurement depends on besides the candidates; empty where none is kept.
  CacheEntry cache_key(const Shape& shape, StageTimer& stages) {
    if (!has_cache_folder()) return {};
    const std::string& structure = structure_.get(stages, [this](StageTimer& cost) {
      const auto timed = cost.scope("tune");
      return matrix_sha256(*a_.a, true);
    });
    const DeviceInfo& device = device_.info();
    return {{"structure", structure},
            {"row_ids", a_.row_ids.empty() ? "no" : "yes"},
            {"precision", std::string(to_string(a_.precision))},
            {"n", fmt::format("{}", shape.n)},
            {"layout", shape.layout == Layout::row_major ? "row" : "col"},
            {"c_type", std::string(to_string(shape.c_type))},
            {"calls", fmt::format("{}", calls_)},
            {"tune", fmt::format("{}", tune_)},
            {"budget_ms", fmt::format("{}", budget_ms_)},
            {"device", device.name},
            {"driver", device.driver_version},
            {"cusparse", device.cusparse_version},
            {"cublas", device.cublas_version}};
  }

  SparseOperand a_;
  Device& device_;
  std::int64_t calls_, tune_, budget_ms_;
  DeviceModel model_;
  SharedPart<std::string> structure_;  // hash
  SharedPart<double> row_overlap_;
  MatrixFeatures features_;
  struct PreparedA {
    std::unique_ptr<Prepared> a;
    StageTimer cost;  // which each shape that uses it counts again
  };
  std::map<std::string, PreparedA> prepared_;  // by kernel and options
  std::set<std::string> picked_;               // those that a shape needs
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
      .precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16},
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
