#include "run/turns.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "report/answer.hpp"
#include "spmmbench/random.hpp"
#include "timing/quantiles.hpp"

namespace spmmbench {
namespace {

// All samples of `times` in the order of the turns.
std::optional<Timing> pooled(const std::vector<ResultRow>& turns,
                             std::optional<Timing> ResultRow::*times) {
  std::vector<double> samples_us;
  for (const ResultRow& turn : turns) {
    if (!(turn.*times)) return std::nullopt;
    const std::vector<double>& own = (turn.*times)->samples_us;
    samples_us.insert(samples_us.end(), own.begin(), own.end());
  }
  return summarise(std::move(samples_us), (turns.front().*times)->launches_per_sample);
}

}  // namespace

Protocol of_turn(Protocol whole) {
  SampleLimits& limits = whole.limits;
  limits.max_samples = std::max(limits.min_samples, limits.max_samples / kTurns);
  limits.max_seconds /= kTurns;
  return whole;
}

std::vector<std::size_t> order_of_turn(std::size_t kernels, std::uint64_t seed, int turn) {
  std::vector<std::size_t> order(kernels);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t kernel) {
    return hash_position(seed, static_cast<std::uint64_t>(turn), kernel);
  });
  return order;
}

ResultRow join_turns(std::vector<ResultRow> turns) {
  if (turns.size() == 1) return std::move(turns.front());
  const auto bad =
      std::ranges::find_if(turns, [](const ResultRow& turn) { return turn.status != Status::ok; });
  if (bad != turns.end()) return std::move(*bad);
  const std::optional<Timing> hot = pooled(turns, &ResultRow::hot);
  const std::optional<Timing> cold = pooled(turns, &ResultRow::cold);
  const auto worst = std::ranges::max_element(turns, {}, [](const ResultRow& turn) {
    return turn.verify ? turn.verify->error_over_bound : 0;
  });
  const std::optional<Verdict> verify = worst->verify;
  const auto fastest = std::ranges::min_element(turns, {}, preprocessing_ms);
  ResultRow row = std::move(*fastest);
  if (hot && row.hot) {
    const double change = row.hot->median_us / hot->median_us;
    for (std::optional<double>* rate : {&row.gflops, &row.of_bound})
      if (*rate) **rate *= change;
  }
  row.hot = hot;
  row.cold = cold;
  row.verify = verify;
  for (ResultRow& turn : turns)
    for (const auto& [name, value] : turn.metrics) {
      const auto [it, is_new] = row.metrics.try_emplace(name, value);
      if (!is_new && name == "preemptions_per_s") it->second = std::max(it->second, value);
      if (!is_new && name == "throttled_repeats") it->second += value;
    }
  return row;
}

}  // namespace spmmbench
