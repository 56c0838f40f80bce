#include "select/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>

#include "core/steady_seconds.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr const char* kTunedKind = "tuned";
constexpr const char* kPicked = "picked";

std::optional<std::size_t> index_of(const std::vector<Trial>& trials, const std::string& name) {
  const auto found = std::find_if(trials.begin(), trials.end(),
                                  [&](const Trial& trial) { return trial.name == name; });
  if (found == trials.end()) return std::nullopt;
  return found - trials.begin();
}

std::optional<Tuned> remembered(const std::vector<Trial>& trials, const CacheEntry& key) {
  const auto entry = read_cache(kTunedKind, key);
  if (!entry) return std::nullopt;
  Tuned out;
  out.remembered = true;
  std::optional<std::size_t> picked;
  bool good = true;
  for (const auto& [name, text] : *entry) {
    if (name == kPicked) {
      picked = index_of(trials, text);
      continue;
    }
    const auto us = positive_number(text);
    const auto trial = index_of(trials, name);
    good &= trial && us;
    if (trial && us) out.measured_us.emplace_back(*trial, *us);
  }
  if (good && picked) {
    out.picked = *picked;
    std::sort(out.measured_us.begin(), out.measured_us.end());
    return out;
  }
  reject_cache(kTunedKind, key, "expected the kernel that was picked and the microseconds of each");
  return std::nullopt;
}

}  // namespace

double measure_ms(double us) {
  constexpr double kLeastMs = 0.2;  // short samples, a flushed cache, memory for B and C
  constexpr int kLaunches = 6;      // of long products
  return kLeastMs + kLaunches * us / 1e3;
}

namespace {

double may_take_us(const Estimate& best, const Estimate& other, double spent_ms, std::int64_t n) {
  if (n < kWideColumns) return other.us / kMayTakeLess;
  const bool costly = spent_ms * 1e3 > kCostlyTrial * best.us;
  return other.us / (costly ? kCostlyMayTakeLess : kWideMayTakeLess);
}

// Whether a trial takes a small part of the time of all calls of the best prediction.
bool is_small_part(double spent_ms, const Estimate& best, std::int64_t calls) {
  constexpr double kSmall = 0.01;  // docs/decisions/few-calls.md
  return spent_ms * 1e3 <= kSmall * static_cast<double>(calls) * best.us;
}

}  // namespace

bool worth_tuning(const Estimate& best, const Estimate& other, std::int64_t calls, std::int64_t n) {
  constexpr double kMayTake = 1.1;  // times the prediction; docs/decisions/selection-trials.md
  const double spent_ms = other.prepare_ms + measure_ms(other.us);
  if (is_small_part(spent_ms, best, calls))
    return cost_us(may_take_us(best, other, spent_ms, n), spent_ms, calls) < kMayTakeMore * best.us;
  return cost_us(other.us, spent_ms + measure_ms(best.us), calls) < kMayTake * best.us;
}

bool worth_trying(const Estimate& best, const Estimate& other, double least_us, std::int64_t calls,
                  std::int64_t n) {
  const double spent_ms = other.prepare_ms + measure_ms(other.us);
  if (calls == 0)
    return cost_us(may_take_us(best, other, spent_ms, n), spent_ms, kSettledCalls) <
           std::max(best.us, least_us);
  const double us =
      is_small_part(spent_ms, best, calls) ? may_take_us(best, other, spent_ms, n) : other.us;
  return cost_us(us, spent_ms, calls) < least_us;
}

bool takes_far_longer(const Estimate& natural, const Estimate& in_order, double us) {
  constexpr double kFarLonger = 1.08;  // docs/decisions/selection-trials.md
  return natural.us > kFarLonger * std::max(in_order.us, us);
}

namespace {

std::string_view kernel_of(const Candidate& candidate) {
  return candidate.spec.substr(0, candidate.spec.find('?'));
}

}  // namespace

void EstimatesByTrials::took(const Candidate& tried, double us) {
  double& share = shares_.try_emplace(kernel_of(tried), 1).first->second;
  share = std::min(share, us / tried.estimate.us);
}

Estimate EstimatesByTrials::of(const Candidate& candidate) const {
  Estimate estimate = candidate.estimate;
  if (const auto share = shares_.find(kernel_of(candidate)); share != shares_.end())
    estimate.us *= share->second;
  return estimate;
}

bool any_may_win(const std::vector<Candidate>& candidates, std::int64_t calls, std::int64_t n) {
  const Candidate& best = candidates.front();
  const double us = (best.by_sizes ? 1 : kMayTakeMore) * best.estimate.us;
  return std::any_of(candidates.begin() + 1, candidates.end(), [&](const Candidate& other) {
    return worth_trying(best.estimate, other.estimate, us, calls, n);
  });
}

Tuned tune(const std::vector<Trial>& trials,
           const std::function<std::optional<double>(std::size_t)>& cost_us, double budget_ms,
           CacheEntry key) {
  key["program"] = this_program();  // whose kernels were measured
  for (std::size_t i = 0; i < trials.size(); ++i)
    key[fmt::format("trial {}", i + 1)] = trials[i].name;
  if (auto known = remembered(trials, key)) return *std::move(known);
  const double start = steady_seconds();
  Tuned out;
  double least = 0;
  CacheEntry entry;
  std::exception_ptr failure;  // of the first trial that failed
  bool lacked_memory = false;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const double spent_ms = (steady_seconds() - start) * 1e3;
    const double expected_ms = spent_ms + trials[i].prepare_ms + measure_ms(trials[i].us);
    if (i > 0 && expected_ms > budget_ms && !out.measured_us.empty()) continue;
    try {
      const std::optional<double> us = cost_us(i);
      if (!us) continue;
      const bool fastest = out.measured_us.empty() || *us < least;
      out.measured_us.emplace_back(i, *us);
      entry[trials[i].name] = fmt::format("{}", *us);
      if (!fastest) continue;
      least = *us;
      out.picked = i;
    } catch (const Unsupported&) {
      if (!failure) failure = std::current_exception();
    } catch (const OutOfMemory&) {
      if (!failure) failure = std::current_exception();
      lacked_memory = true;
    }
  }
  if (out.measured_us.empty() && failure) std::rethrow_exception(failure);
  if (lacked_memory) return out;
  entry[kPicked] = trials[out.picked].name;
  write_cache(kTunedKind, key, entry);
  return out;
}

}  // namespace spmmbench
