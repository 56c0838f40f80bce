// auto: predicts the time of every kernel that the table of coefficients knows, ours and the
// vendors' alike, and runs the best. src/select has the features it looks at, the terms they make
// and the coefficients; what it picked, and what it expected of the next best, is in the result's
// params.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "select/predict.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/shared_parts.hpp"

namespace spmmbench {
namespace {

struct Candidate {
  const Kernel* kernel = nullptr;
  Spec spec;
  Prediction prediction;
};

// Best first. `calls` > 0 counts preparation, spread over that many calls.
std::vector<Candidate> ranked(const MatrixFeatures& features, const SparseOperand& a,
                              const Shape& shape, const DeviceModel& model, std::int64_t calls) {
  std::vector<Candidate> out;
  for (const std::string& name : candidates(a.precision)) {
    Spec spec = Spec::parse(name);
    const Kernel* const kernel = Registry<Kernel>::instance().find(spec.name);
    const auto prediction = predict(name, features, shape.n, a.precision, model);
    if (kernel != nullptr && prediction) out.push_back({kernel, std::move(spec), *prediction});
  }
  const auto cost = [calls](const Candidate& candidate) {
    const Prediction& p = candidate.prediction;
    return calls > 0 ? p.rank_us + p.prepare_ms * 1e3 / static_cast<double>(calls) : p.rank_us;
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](const Candidate& x, const Candidate& y) { return cost(x) < cost(y); });
  return out;
}

// The first `most` that support the problem. `refusal` is the reason of the last that does not.
std::vector<Candidate> supported(std::vector<Candidate> all, const SparseOperand& a,
                                 const Shape& shape, const DeviceInfo& device, std::size_t most,
                                 std::string& refusal) {
  std::vector<Candidate> out;
  for (Candidate& candidate : all) {
    const Support support =
        check_support(*candidate.kernel, Problem{a, shape, candidate.spec.options}, device);
    if (!support.ok) {
      refusal = fmt::format("{}: {}", candidate.spec.name, support.reason);
      continue;
    }
    out.push_back(std::move(candidate));
    if (out.size() == most) break;
  }
  return out;
}

class AutoPlan final : public Plan {
 public:
  AutoPlan(std::unique_ptr<Plan> plan, std::map<std::string, std::string> params,
           const MatrixFeatures& features)
      : plan_(std::move(plan)), params_(std::move(params)), features_(features) {}

  void inspect_b(const DenseView& b, StageTimer& stages) override { plan_->inspect_b(b, stages); }
  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    plan_->launch(b, c, stream);
  }
  PlanReport report() const override {
    PlanReport report = plan_->report();
    report.params.insert(params_.begin(), params_.end());
    for (const auto& [name, value] : named_features(features_))
      report.metrics["feature_" + name] = value;
    return report;
  }

 private:
  std::unique_ptr<Plan> plan_;
  std::map<std::string, std::string> params_;
  MatrixFeatures features_;
};

const auto kCalls =
    integer_option<std::int64_t>("calls", 0, 0, 1'000'000'000'000,
                                 "count preparation as spread over this many calls; 0: ignore it");
const auto kTune = integer_option(
    "tune", 0, 0, 8, "measure so many of the best predictions on the device; 0 and 1: none");

class AutoPrepared final : public Prepared {
 public:
  AutoPrepared(const SparseOperand& a, const Options& options, Device& device, StageTimer& stages)
      : a_(a),
        device_(device),
        calls_(kCalls(options)),
        tune_(kTune(options)),
        model_(device_model(device.info(), device.copy_bytes_per_second())) {
    const auto timed = stages.scope("choose");
    features_ = features_of(*a.a);
  }

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    std::vector<Candidate> best;
    {
      const auto timed = stages.scope("choose");
      std::string refusal;
      best = supported(ranked(features_, a_, shape, model_, calls_), a_, shape, device_.info(),
                       std::max<std::size_t>(tune_, 2), refusal);
      if (best.empty()) throw Error(fmt::format("auto: {}", refusal));
    }
    std::map<std::string, std::string> params;
    params["why"] = explain(best);
    std::unique_ptr<Plan> plan;
    if (tune_ > 1) {
      plan = fastest(best, shape, stages, params);
    } else {
      params["picked"] = best[0].spec.to_string();
      plan = bind_one(best[0], shape, stages);
    }
    return std::make_unique<AutoPlan>(std::move(plan), std::move(params), features_);
  }

 private:
  std::unique_ptr<Plan> bind_one(const Candidate& candidate, const Shape& shape,
                                 StageTimer& stages) {
    auto& prepared = prepared_.get(candidate.spec.to_string(), [&](StageTimer& cost) {
      return candidate.kernel->prepare(a_, candidate.spec.options, device_, cost);
    });
    stages.add(prepared.cost);
    return prepared.part->bind(shape, stages);
  }

  // Measures each on the device, with a B and a C of its own, in the stage "tune".
  std::unique_ptr<Plan> fastest(const std::vector<Candidate>& best, const Shape& shape,
                                StageTimer& stages, std::map<std::string, std::string>& params) {
    constexpr int kLaunches = 10;
    constexpr std::uint64_t kSeed = 1;
    const auto timed = stages.scope("tune");
    DenseView b = make_dense_view(a_.k(), shape.n, shape.layout, storage_type(a_.precision));
    DenseView c = make_dense_view(a_.m(), shape.n, shape.layout, shape.c_type);
    const Buffer b_memory = device_.allocate(b.bytes()), c_memory = device_.allocate(c.bytes());
    b.data = b_memory.data();
    c.data = c_memory.data();
    device_.fill_uniform(b, kSeed, a_.precision);
    std::unique_ptr<Plan> fastest;
    double least = std::numeric_limits<double>::infinity();
    std::string measured;
    for (const Candidate& candidate : best) {
      StageTimer within;  // part of this stage
      std::unique_ptr<Plan> plan = bind_one(candidate, shape, within);
      plan->inspect_b(b, within);
      const auto launch = [&] { plan->launch(b, c, device_.stream()); };
      (void)device_.time_us(launch, 2);  // loads the kernel
      const double us = device_.time_us(launch, kLaunches) / kLaunches;
      measured += fmt::format("{}{} {:.1f} us", measured.empty() ? "" : ", ",
                              candidate.spec.to_string(), us);
      if (us >= least) continue;
      least = us;
      params["picked"] = candidate.spec.to_string();
      fastest = std::move(plan);
    }
    device_.synchronize();
    params["measured"] = measured;
    return fastest;
  }

  std::string explain(const std::vector<Candidate>& best) const {
    std::vector<std::string> expected;
    for (const Candidate& candidate : best)
      expected.push_back(
          fmt::format("{} {:.1f} us", candidate.spec.to_string(), candidate.prediction.us));
    return fmt::format(
        "{:.1f} nonzeros per row (cv {:.1f}), 8-row windows gather {:.2f} per "
        "nonzero, 128x64 blocks {:.0f}% full: expected {}",
        features_.mean_row, features_.cv_row, features_.gathered_8, 100 * features_.block_fill,
        fmt::join(expected, ", "));
  }

  SparseOperand a_;
  Device& device_;
  std::int64_t calls_, tune_;
  DeviceModel model_;
  MatrixFeatures features_;
  SharedParts<std::string, std::unique_ptr<Prepared>> prepared_;  // by what was picked
};

class Auto final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    const std::int64_t calls = kCalls(problem.options);
    const auto most = static_cast<std::size_t>(std::max(1, kTune(problem.options)));
    std::string refusal = fmt::format("no coefficients for N = {}", problem.n);
    const auto best =
        supported(ranked(features_of(*problem.a), problem, problem, device_model(device, 0), calls),
                  problem, problem, device, most, refusal);
    if (best.empty()) return Support::no(refusal);
    Support all = Support::yes(0);
    for (const Candidate& candidate : best)
      all.device_bytes +=
          check_support(*candidate.kernel,
                        Problem{problem.operand(), problem.shape(), candidate.spec.options}, device)
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
      .options = {kCalls, kTune},
  };
};

SPMMBENCH_REGISTER_KERNEL(Auto);

}  // namespace
}  // namespace spmmbench
