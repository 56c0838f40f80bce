// auto: predicts the time of every kernel in the table of coefficients, ours and the vendors'
// alike, and runs the best. src/select has the features of a matrix, the terms made of them and the
// coefficients. The params of the result have what was picked and what was predicted for the next
// best.

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
#include "select/predict.hpp"
#include "select/row_overlap.hpp"
#include "select/tune.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"
#include "timing/sampler.hpp"

namespace spmmbench {
namespace {

struct Choice {
  const Kernel* kernel = nullptr;
  Spec spec;
  Prediction prediction;
};

bool takes_layout(const Candidate& candidate, Layout layout) {
  const Kernel* kernel = Registry<Kernel>::instance().find(Spec::parse(candidate.name).name);
  return kernel != nullptr && contains(kernel->info().layouts, layout);
}

// Best first. Some may name kernels that this program was built without, or that do not take the
// layout. Whether rows of A resemble each other is asked only where that decides which of the
// others is the best.
std::vector<Candidate> ranked(MatrixFeatures& features, const SparseOperand& a, const Shape& shape,
                              const DeviceModel& model, std::int64_t calls) {
  const auto cost = [calls](const Candidate& candidate) {
    return cost_us(candidate.prediction.rank_us, candidate.prediction.prepare_ms, calls);
  };
  const auto rank = [&](double row_overlap) {
    MatrixFeatures assumed = features;
    assumed.row_overlap = row_overlap;
    std::vector<Candidate> out = predict(assumed, shape.n, shape.layout, a.precision, model);
    std::ranges::stable_sort(out, {}, cost);
    return out;
  };
  if (features.row_overlap < 1) return rank(features.row_overlap);
  const std::vector<Candidate> if_alike = rank(1), if_not = rank(0);
  const auto best = [&](const std::vector<Candidate>& all) {
    const auto found = std::ranges::find_if(
        all, [&](const Candidate& one) { return takes_layout(one, shape.layout); });
    return found == all.end() ? std::string_view() : found->name;
  };
  if (best(if_alike) == best(if_not)) return rank(kUnknownRowOverlap);
  constexpr double kAllAlike = 0.999;  // 1 would say that it was not asked
  features.row_overlap = std::min(row_overlap(*a.a), kAllAlike);
  return rank(features.row_overlap);
}

// The first `most` candidates that support the problem. `refusal` is the reason of the last one
// that does not.
std::vector<Choice> supported(const std::vector<Candidate>& all, const SparseOperand& a,
                              const Shape& shape, const DeviceInfo& device, std::size_t most,
                              std::string& refusal) {
  std::vector<Choice> out;
  for (const auto& [name, prediction] : all) {
    Choice choice{nullptr, Spec::parse(name), prediction};
    choice.kernel = Registry<Kernel>::instance().find(choice.spec.name);
    if (choice.kernel == nullptr) continue;
    const Support support =
        check_support(*choice.kernel, Problem{a, shape, choice.spec.options}, device);
    if (!support.ok) {
      refusal = fmt::format("{}: {}", choice.spec.name, support.reason);
      continue;
    }
    out.push_back(std::move(choice));
    if (out.size() == most) break;
  }
  return out;
}

// What was chosen from, for the report: choosing itself has to be fast.
struct Why {
  MatrixFeatures features;
  std::vector<Candidate> ranked;
  std::int64_t calls = 0;
  std::string refusal;

  // The features that decide most, and the best predictions in the order of their ranks: each with
  // the margin that it is multiplied by.
  std::string text() const {
    constexpr std::size_t kNamed = 4;
    std::vector<std::string> expected;
    for (const auto& [name, p] : ranked) {
      const Spec spec = Spec::parse(name);
      if (Registry<Kernel>::instance().find(spec.name) == nullptr) continue;
      expected.push_back(fmt::format("{} {:.1f} us", spec.to_string(), p.us));
      if (p.rank_us != p.us) expected.back() += fmt::format(" x {:.2f}", p.rank_us / p.us);
      if (calls > 0) expected.back() += fmt::format(" after {:.1f} ms", p.prepare_ms);
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
const auto kTune = integer_option(
    "tune", 0, 0, 8, "measure so many of the best predictions on the device; 0 and 1: none");
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
    std::vector<Choice> best;
    std::map<std::string, std::string> params;
    Why why;
    why.calls = calls_;
    {
      const auto timed = stages.scope("choose");
      why.ranked = ranked(features_, a_, shape, model_, calls_);
      best = supported(why.ranked, a_, shape, device_.info(), std::max<std::size_t>(tune_, 1),
                       why.refusal);
      if (best.empty()) throw Error(fmt::format("auto: {}", why.refusal));
      why.features = features_;
    }
    std::unique_ptr<Plan> plan;
    const std::vector<Trial> trials = trials_of(best);
    if (tune_ > 1 && worth_tuning(trials, calls_)) {
      plan = fastest(best, trials, shape, stages, params);
    } else {
      params["picked"] = best[0].spec.to_string();
      plan = bind_one(best[0], shape, stages);
    }
    return std::make_unique<AutoPlan>(std::move(plan), std::move(params), std::move(why));
  }

 private:
  std::unique_ptr<Plan> bind_one(const Choice& choice, const Shape& shape, StageTimer& stages) {
    auto found = prepared_.find(choice.spec.to_string());
    if (found == prepared_.end()) {
      StageTimer cost;
      auto prepared = choice.kernel->prepare(a_, choice.spec.options, device_, cost);
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

  static std::vector<Trial> trials_of(const std::vector<Choice>& best) {
    std::vector<Trial> trials;
    trials.reserve(best.size());
    for (const auto& [kernel, spec, prediction] : best)
      trials.push_back({spec.to_string(), prediction.us, prediction.prepare_ms});
    return trials;
  }

  // Measures each on the device, with a B and a C of its own. The stage "tune" has all of it, as if
  // nothing had been prepared before.
  std::unique_ptr<Plan> fastest(const std::vector<Choice>& best, const std::vector<Trial>& trials,
                                const Shape& shape, StageTimer& stages,
                                std::map<std::string, std::string>& params) {
    std::unique_ptr<Plan> fastest;
    std::string leader;
    double leader_us = 0, least = std::numeric_limits<double>::infinity();
    std::vector<StageTimer> spent(best.size());
    const auto measure = [&](std::size_t i) -> std::optional<double> {
      if (fastest && !worth_trying(trials[i], leader_us, 1, calls_)) return std::nullopt;
      keep_only(leader);
      std::unique_ptr<Plan> plan = bind_one(best[i], shape, spent[i]);
      const double prepare_ms = spent[i].total_ms();
      const auto timed = spent[i].scope("measure");
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
    const Tuned tuned =
        tune(trials, measure, static_cast<double>(budget_ms_), cache_key(shape, stages));
    device_.synchronize();
    params["picked"] = trials[tuned.picked].name;
    picked_.insert(trials[tuned.picked].name);
    keep_only(trials[tuned.picked].name);
    for (const auto& [i, us] : tuned.measured_us)
      params["measured"] += fmt::format("{}{} {:.1f} us{}", params["measured"].empty() ? "" : ", ",
                                        trials[i].name, us, calls_ > 0 ? " with preparation" : "");
    if (tuned.remembered) params["measured"] += " (remembered)";
    StageTimer all;
    for (const StageTimer& trial : spent) all.add(trial);
    stages.add("tune", all.total_ms());
    return fastest ? std::move(fastest) : bind_one(best[tuned.picked], shape, stages);
  }

  // As a run measures it when it is hot, but for a shorter time.
  double time_us(Plan& plan, const Shape& shape) {
    constexpr SampleLimits kLimits = {.min_samples = 5, .max_samples = 5};
    constexpr SamplerOptions kSampler = {.warmup_us = 1000, .sample_us = 200, .max_batch = 64};
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
    const Timing timing = sample_hot(device_, launch, kLimits, kSampler, [] {});
    device_.synchronize();
    return timing.median_us;
  }

  // What a measurement depends on besides the candidates; empty where none is kept.
  CacheEntry cache_key(const Shape& shape, StageTimer& stages) {
    if (!has_cache_folder()) return {};
    const auto timed = stages.scope("tune");
    if (structure_.empty()) structure_ = matrix_sha256(*a_.a, true);
    const DeviceInfo& device = device_.info();
    return {{"structure", structure_},
            {"row_ids", a_.row_ids.empty() ? "no" : "yes"},
            {"precision", std::string(to_string(a_.precision))},
            {"n", fmt::format("{}", shape.n)},
            {"layout", shape.layout == Layout::row_major ? "row" : "col"},
            {"c_type", std::string(to_string(shape.c_type))},
            {"calls", fmt::format("{}", calls_)},
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
  std::string structure_;  // hash, where it was needed
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
    const auto most = static_cast<std::size_t>(std::max(1, kTune(problem.options)));
    std::string refusal = fmt::format("no coefficients for N = {}", problem.n);
    MatrixFeatures features = features_of(*problem.a);
    const auto best = supported(
        ranked(features, problem, problem, device_model(device, known_rates(device)), calls),
        problem, problem, device, most, refusal);
    if (best.empty()) return Support::no(refusal);
    Support all = Support::yes(0);
    for (const Choice& choice : best)
      all.device_bytes +=
          check_support(*choice.kernel,
                        Problem{problem.operand(), problem.shape(), choice.spec.options}, device)
              .device_bytes;
    return all;
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer& stages) const override {
    return std::make_unique<AutoPrepared>(a, options, device, stages);
  }

 private:
  KernelInfo info_ = {
      .name = "auto",
      .summary = "the kernel that is predicted to be fastest, vendor libraries included",
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
