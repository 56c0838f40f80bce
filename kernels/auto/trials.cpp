#include "auto/trials.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "io/sha256.hpp"
#include "select/tune.hpp"
#include "spmmbench/error.hpp"
#include "timing/sampler.hpp"

namespace spmmbench {
namespace {

Trial trial_of(const Candidate& candidate) {
  return {Spec::parse(candidate.spec).to_string(), candidate.estimate.us,
          candidate.estimate.prepare_ms};
}

// The times of one trial. `all` gets them at its end, also where it fails.
struct TrialTimer : StageTimer {
  explicit TrialTimer(StageTimer& timer) : all(timer) {}
  TrialTimer(const TrialTimer&) = delete;
  TrialTimer& operator=(const TrialTimer&) = delete;
  ~TrialTimer() { all.add(*this); }
  StageTimer& all;
};

}  // namespace

std::unique_ptr<Plan> PreparedKernels::bind(const Choice& choice, const Shape& shape,
                                            StageTimer& stages) {
  const std::string name = choice.spec.to_string();
  auto found = entries_.find(name);
  if (found == entries_.end()) {
    StageTimer cost;
    std::unique_ptr<Prepared> prepared;
    try {
      prepared = choice.kernel->prepare(a_, choice.spec.options, device_, cost);
    } catch (...) {
      stages.add(cost);
      throw;
    }
    found = entries_.emplace(name, Entry{std::move(prepared), std::move(cost)}).first;
  }
  stages.add(found->second.cost);
  return found->second.a->bind(shape, stages);
}

void PreparedKernels::free_all_but(const std::string& name) {
  std::erase_if(entries_,
                [&](const auto& one) { return one.first != name && !kept_.contains(one.first); });
}

std::unique_ptr<Plan> Trials::fastest(const std::vector<Candidate>& candidates, const Choice& best,
                                      const Shape& shape, StageTimer& stages, Pick& pick) {
  const CacheEntry key = cache_key(shape, stages);
  StageTimer spent;
  std::unique_ptr<Plan> plan;
  try {
    plan = measured(candidates, key, shape, stages, spent, pick);
  } catch (const OutOfMemory&) {  // no trial had the memory for its B and C as well
    prepared_.free_all_but(pick.kernel);
    plan = prepared_.bind(best, shape, stages);
  }
  stages.add("tune", spent.total_ms());
  for (const std::string& stage : spent.kept()) stages.mark_kept(stage);
  return plan;
}

std::unique_ptr<Plan> Trials::measured(const std::vector<Candidate>& candidates,
                                       const CacheEntry& key, const Shape& shape,
                                       StageTimer& stages, StageTimer& spent, Pick& pick) {
  std::vector<Trial> trials;
  trials.reserve(candidates.size());
  for (const Candidate& candidate : candidates) trials.push_back(trial_of(candidate));
  std::unique_ptr<Plan> fastest;
  std::string leader, refusal;
  std::int64_t tried = 0;
  double leader_us = 0, least = std::numeric_limits<double>::infinity();
  const auto measure = [&](std::size_t i) -> std::optional<double> {
    if (tried == limits_.most ||
        (fastest &&
         !worth_trying(candidates[0].estimate, candidates[i].estimate, leader_us, limits_.calls)))
      return std::nullopt;
    TrialTimer within(spent);
    const auto choice = supported(candidates[i], a_, shape, device_.info(), refusal);
    if (!choice) return std::nullopt;
    ++tried;
    prepared_.free_all_but(leader);
    std::unique_ptr<Plan> plan = prepared_.bind(*choice, shape, within);
    const double prepare_ms = within.total_ms();
    const auto timed = within.scope("measure");
    const double us = time_us(*plan, shape);
    const double cost = cost_us(us, prepare_ms, limits_.calls);
    if (cost < least) {
      least = cost;
      fastest = std::move(plan);
      leader = trials[i].name;
      leader_us = us;
    }
    return cost;
  };
  const Tuned tuned = tune(trials, measure, static_cast<double>(limits_.budget_ms), key);
  device_.synchronize();
  if (tuned.remembered) {
    const auto choice = supported(candidates[tuned.picked], a_, shape, device_.info(), refusal);
    try {
      if (choice) fastest = prepared_.bind(*choice, shape, stages);
    } catch (const OutOfMemory&) {  // there was enough when it was measured
    }
    if (!fastest) return measured(candidates, {}, shape, stages, spent, pick);
  }
  pick.kernel = trials[tuned.picked].name;
  pick.remembered = tuned.remembered;
  for (const auto& [i, us] : tuned.measured_us) pick.measured_us.emplace_back(trials[i].name, us);
  return fastest;
}

// As a run measures it when it is hot, but with fewer samples. The cache is flushed because some
// kernels read A faster right after it was copied to the device (docs/kernels/auto.md).
double Trials::time_us(Plan& plan, const Shape& shape) {
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
  const auto launch = [&](int) { plan.launch(b, c, device_.stream()); };
  device_.flush_cache();
  const Timing timing = sample_hot(device_, launch, kLimits, kSampler, {});
  device_.synchronize();
  return timing.median_us;
}

// What a measurement depends on besides the candidates; empty where none is kept.
CacheEntry Trials::cache_key(const Shape& shape, StageTimer& stages) {
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
          {"calls", fmt::format("{}", limits_.calls)},
          {"tune", fmt::format("{}", limits_.most)},
          {"budget_ms", fmt::format("{}", limits_.budget_ms)},
          {"device", device.name},
          {"driver", device.driver_version},
          {"cusparse", device.cusparse_version},
          {"cublas", device.cublas_version}};
}

}  // namespace spmmbench
