#include "auto/trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "auto/device_features.hpp"
#include "common/resident_csr.hpp"
#include "gpu/batch_timer.hpp"
#include "gpu/vendor_libraries.hpp"
#include "io/sha256.hpp"
#include "select/features.hpp"
#include "select/tune.hpp"

namespace spmmbench {
namespace {

Trial trial_of(const Candidate& candidate) {
  return {Spec::parse(candidate.spec).to_string(), candidate.estimate.us,
          candidate.estimate.prepare_ms};
}

// Whether a kernel that was to look for an order has taken one that it considers anyway.
bool keeps_own_order(const Plan& plan) {
  const PlanReport report = plan.report();
  const auto order = report.params.find("order");
  return order != report.params.end() && (order->second == "natural" || order->second == "degree");
}

// Whether a trial of a kernel with order=search, which took `us`, has left nothing to its own
// order: it found no better one, or one that is known and should and does take far less time.
bool outdoes_own_order(const Plan& plan, const Spec& spec, const Candidate& tried, double us,
                       bool knows_order, const std::vector<Candidate>& all) {
  if (spec.options.get("order", "") != "search") return false;
  if (keeps_own_order(plan)) return true;
  const auto own = std::ranges::find(all, tried.ordered_as, &Candidate::spec);
  return knows_order && own != all.end() && takes_far_longer(own->estimate, tried.estimate, us);
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

BoundPlan PreparedKernels::bind(const Choice& choice, const Shape& shape, StageTimer& stages) {
  const std::string name = choice.spec.to_string();
  auto found = entries_.find(name);
  if (found == entries_.end()) {
    StageTimer cost;
    std::shared_ptr<Prepared> prepared;
    try {
      prepared = choice.kernel->prepare(a_, choice.spec.options, device_, cost);
    } catch (...) {
      stages.add(cost);
      throw;
    }
    found = entries_.emplace(name, Entry{std::move(prepared), std::move(cost)}).first;
  }
  stages.add(found->second.cost);
  return {found->second.a, found->second.a->bind(shape, stages)};
}

void PreparedKernels::free_unused() {
  std::erase_if(entries_, [&](const auto& one) {
    return one.second.a.use_count() == 1 && !kept_.contains(one.first);
  });
}

TrialTimes::TrialTimes(const SparseOperand& a, const Shape& shape, Device& device)
    : device_(device),
      b_(make_b_view(a.k(), shape.n, shape.layout, storage_type(a.precision))),
      c_(make_dense_view(a.m(), shape.n, shape.layout, shape.c_type)),
      b_memory_(device.allocate(b_.bytes())),
      c_memory_(device.allocate(c_.bytes())) {
  // Finite and above 0 in every type. Random values take longer to write than a sample.
  constexpr unsigned char kByte = 0x3C;
  b_.data = b_memory_.data();
  c_.data = c_memory_.data();
  device.fill_bytes(b_.data, kByte, b_.bytes());
}

// As a run measures it when it is hot, but in one short sample. The cache is flushed because some
// kernels read A faster right after it was copied to the device (docs/kernels/auto.md). How many
// launches make a sample, and whether a graph launches them, follows from `about_us`. All trials
// that are compared are given the same, so that what a sample takes beside its launches, which is
// 1 us and more, is the same for all.
double TrialTimes::of(Plan& plan, double about_us) {
  // Of launches that overlap, the tenth may take longer than the third, as in the long series of a
  // run: launches are batched until a sample lasts this long (docs/decisions/selection-trials.md).
  constexpr double kSampleUs = 90;
  constexpr int kMostLaunches = 16;  // of a sample
  // Shorter ones follow one another as a graph launches them. An estimate may be that much too
  // long.
  constexpr double kRecordedUs = 10 * kMayTakeLess;
  StageTimer within;
  plan.inspect_b(b_, within);
  const auto launch = [&] { plan.launch(b_, c_, device_.stream()); };
  // A launch that writes more than the cache holds flushes it as well.
  if (c_.bytes() < device_.info().l2_bytes) device_.flush_cache();
  launch();
  const int count = static_cast<int>(
      std::clamp(std::ceil(kSampleUs / std::max(about_us, 1.0)), 1.0, double{kMostLaunches}));
  return batch_us(device_, launch, count, about_us < kRecordedUs) / count;
}

BoundPlan Trials::fastest(const Ranking& ranking, const std::vector<Candidate>& candidates,
                          const Choice& best, StageTimer& stages, Pick& pick) {
  const Shape& shape = ranking.shape;
  const CacheEntry key = cache_key(shape, stages);
  // The copy of A has a stage of its own, as in rows of other kernels.
  StageTimer of_a;
  if (a_.on_device != nullptr) count_copy(*a_.on_device, of_a);
  StageTimer spent = of_a;
  BoundPlan bound;
  try {
    bound = measured(ranking, candidates, key, stages, spent, pick);
  } catch (const OutOfMemory&) {  // no trial had the memory for its B and C as well
    prepared_.free_unused();
    bound = prepared_.bind(best, shape, stages);
  }
  stages.add(of_a);
  stages.add("tune", spent.total_ms() - of_a.total_ms());
  for (const std::string& stage : spent.kept()) stages.mark_kept(stage);
  return bound;
}

BoundPlan Trials::measured(const Ranking& ranking, std::vector<Candidate> candidates,
                           const CacheEntry& key, StageTimer& stages, StageTimer& spent,
                           Pick& pick) {
  const Shape& shape = ranking.shape;
  std::vector<Trial> trials;
  trials.reserve(candidates.size());
  for (const Candidate& candidate : candidates) trials.push_back(trial_of(candidate));
  const Estimate best = candidates.front().estimate;
  std::optional<TrialTimes> times;
  BoundPlan fastest;
  std::string refusal;
  std::int64_t tried = 0;
  std::set<std::string> outdone;  // kernels that another trial has made needless
  double leader_us = 0, least = std::numeric_limits<double>::infinity();
  double about_us = 0;  // of the first trial, for all
  bool knows_order = false;
  EstimatesByTrials by_trials;
  const auto measure = [&](std::size_t i) -> std::optional<double> {
    if (tried == limits_.most || outdone.contains(trials[i].name) ||
        (fastest.plan &&
         !worth_trying(best, by_trials.of(candidates[i]), leader_us, limits_.calls, shape.n)))
      return std::nullopt;
    TrialTimer within(spent);
    const auto choice = supported(candidates[i], a_, shape, device_.info(), refusal);
    if (!choice) return std::nullopt;
    ++tried;
    prepared_.free_unused();
    BoundPlan bound = prepared_.bind(*choice, shape, within);
    const double prepare_ms = within.total_ms();
    const auto timed = within.scope("measure");
    if (!times) times.emplace(a_, shape, device_);
    if (about_us == 0) about_us = candidates[i].estimate.us;
    const double us = times->of(*bound.plan, about_us);
    const std::span untold(candidates.begin() + i, candidates.end());
    if (!knows_order && any_takes_order(untold))
      if (const auto windows = windows_in_known_order(a_, device_, within)) {
        knows_order = true;
        ranking.estimate_in_order(*windows, untold);
      }
    by_trials.took(candidates[i], us);
    if (outdoes_own_order(*bound.plan, choice->spec, candidates[i], us, knows_order, candidates))
      outdone.insert(choice->spec.name);
    const double cost = cost_us(us, prepare_ms, limits_.calls);
    if (cost < least) {
      least = cost;
      const BoundPlan slower = std::exchange(fastest, std::move(bound));
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
    if (!fastest.plan) return measured(ranking, candidates, {}, stages, spent, pick);
  }
  pick.kernel = trials[tuned.picked].name;
  pick.remembered = tuned.remembered;
  for (const auto& [i, us] : tuned.measured_us) pick.measured_us.emplace_back(trials[i].name, us);
  return fastest;
}

// What a measurement depends on besides the candidates; empty where none is kept.
CacheEntry Trials::cache_key(const Shape& shape, StageTimer& stages) {
  if (!has_cache_folder()) return {};
  const std::string& structure = structure_.get(stages, [this](StageTimer& cost) {
    const auto timed = cost.scope("tune");
    return matrix_sha256(*a_.a, true);
  });
  DeviceInfo device = device_.info();
  name_libraries(device);
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
