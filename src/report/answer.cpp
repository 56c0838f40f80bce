#include "report/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/numbered.hpp"
#include "report/identity.hpp"
#include "timing/quantiles.hpp"

namespace spmmbench {
namespace {

std::string duration(double us) {
  constexpr double kMs = 1e3, kSecond = 1e6;
  if (us >= kSecond) return fmt::format("{:.3g} s", us / kSecond);
  if (us >= 10 * kMs) return fmt::format("{:.3g} ms", us / kMs);
  return us >= kMs ? fmt::format("{:.0f} us", us) : fmt::format("{:.3g} us", us);
}

// The first number of calls at which `later`, which is faster per call, takes no longer in all than
// `now`.
std::int64_t overtakes(const Cost& later, const Cost& now, std::int64_t least) {
  constexpr double kMost = 1e18;  // calls, so that the number can be written
  const double calls = std::ceil((later.prepare_ms - now.prepare_ms) * 1e3 / (now.us - later.us));
  return std::max(least, static_cast<std::int64_t>(std::clamp(calls, 1.0, kMost)));
}

}  // namespace

std::string types_of(const std::string& precision, const std::string& c_type) {
  const bool is_usual = c_type == "fp32" || c_type == "fp64";  // which inputs of fp64 alone have
  return is_usual ? precision : fmt::format("{}>{}", precision, c_type);
}

std::string types_of(const ResultRow& row) { return types_of(row.precision, row.c_type); }

std::string label_of(const std::string& kernel, const std::string& reorder) {
  return reorder == "none" ? kernel : fmt::format("{} [{}]", kernel, reorder);
}

std::string label_of(const ResultRow& row) { return label_of(row.kernel, row.reorder); }

double noise_of(const ResultRow& row) {
  const double noise = row.hot ? relative_noise(row.hot->samples_us) : 0;
  return std::isfinite(noise) ? noise : 0;
}

double preprocessing_ms(const ResultRow& row) {
  double total = 0;
  for (const auto& [stage, ms] : row.stages_ms)
    if (stage != "load") total += ms;
  return total;
}

std::optional<Cost> cost_of(const ResultRow& row) {
  if (row.status != Status::ok || row.binary || !row.hot) return std::nullopt;
  if (!(row.hot->median_us > 0) || std::isinf(row.hot->median_us)) return std::nullopt;
  return Cost{preprocessing_ms(row), row.hot->median_us};
}

std::vector<std::pair<std::int64_t, std::size_t>> lower_envelope(const std::vector<Cost>& costs) {
  std::vector<std::pair<std::int64_t, std::size_t>> steps;
  if (costs.empty()) return steps;
  const auto first = std::min_element(costs.begin(), costs.end(), [](const Cost& a, const Cost& b) {
    return std::pair(a.total_us(1), a.us) < std::pair(b.total_us(1), b.us);
  });
  steps.emplace_back(1, first - costs.begin());
  for (;;) {
    const auto [from, index] = steps.back();
    const Cost& now = costs[index];
    std::optional<std::tuple<std::int64_t, double, std::size_t>> next;  // calls, total, index
    for (std::size_t i = 0; i < costs.size(); ++i) {
      if (!(costs[i].us < (1 - kLeastGain) * now.us)) continue;
      const std::int64_t calls = overtakes(costs[i], now, from + 1);
      const std::tuple candidate(calls, costs[i].total_us(static_cast<double>(calls)), i);
      if (!next || candidate < *next) next = candidate;
    }
    if (!next) return steps;
    steps.emplace_back(std::get<0>(*next), std::get<2>(*next));
  }
}

void Answers::add(const ResultRow& row) {
  const std::optional<Cost> cost = cost_of(row);
  if (!cost) return;
  const bool on_gpu = row.device_index.has_value();
  const std::string matrix = identity_of(row.matrix);
  const auto [it, is_new] = index_of_.try_emplace(
      {matrix, row.n, row.layout + operation_of(row), row.precision, row.c_type, on_gpu},
      groups_.size());
  if (is_new)
    groups_.push_back(
        {{row.matrix.name, row.matrix.source, row.n, row.layout, row.precision, row.c_type, {}},
         matrix,
         on_gpu});
  Group& group = groups_[it->second];
  group.answer.steps.push_back(
      {1, row.kernel, row.reorder, cost->prepare_ms, cost->us, row.of_bound, noise_of(row)});
  group.baselines_alone &= row.baseline;
}

std::vector<Answer> Answers::all() const {
  const auto problem = [](const Group& group) {
    return std::tuple(group.matrix, group.answer.n, group.answer.layout);
  };
  std::set<std::tuple<std::string, std::int64_t, std::string>> on_gpu, with_kernels;
  for (const Group& group : groups_)
    if (group.on_gpu) on_gpu.insert(problem(group));
  const auto counts = [&](const Group& group) {
    return group.on_gpu || !on_gpu.contains(problem(group));
  };
  for (const Group& group : groups_)
    if (counts(group) && !group.baselines_alone) with_kernels.insert(problem(group));
  std::vector<Answer> out;
  for (const Group& group : groups_) {
    if (!counts(group)) continue;
    const bool fp32 = group.answer.precision == "fp32" && group.answer.c_type == "fp32";
    if (fp32 && group.baselines_alone && with_kernels.contains(problem(group))) continue;
    std::vector<Cost> costs;
    for (const AnswerStep& row : group.answer.steps) costs.push_back({row.prepare_ms, row.us});
    Answer answer = group.answer;
    answer.steps.clear();
    for (const auto& [calls, index] : lower_envelope(costs)) {
      answer.steps.push_back(group.answer.steps[index]);
      answer.steps.back().from_calls = calls;
    }
    out.push_back(std::move(answer));
  }
  return out;
}

std::string to_string(const Answer& answer, std::int64_t calls) {
  for (const AnswerStep& step : answer.steps)
    if (step.noise > kTooNoisy)
      return fmt::format(
          "cannot tell: {} has {:.0f} % noise, more than {:.0f} %. Let nothing else run, or raise "
          "--max-seconds and --max-samples",
          label_of(step.kernel, step.reorder), step.noise * 100, kTooNoisy * 100);
  std::string text;
  const AnswerStep* asked = nullptr;
  for (const AnswerStep& step : answer.steps) {
    const double once_us = Cost{step.prepare_ms, step.us}.total_us(1);
    text += step.from_calls == 1
                ? fmt::format("1 call: {}, {} in all", label_of(step.kernel, step.reorder),
                              duration(once_us))
                : fmt::format(" \u00b7 from {} calls: {}, {} a call", step.from_calls,
                              label_of(step.kernel, step.reorder), duration(step.us));
    if (step.from_calls <= calls) asked = &step;
  }
  const AnswerStep& last = answer.steps.back();
  if (answer.steps.size() == 1) text += fmt::format(", then {} a call", duration(last.us));
  if (last.of_bound) text += fmt::format(", {:.2f} of the bound", *last.of_bound);
  if (asked == nullptr || calls == 1) return text;
  const Cost cost{asked->prepare_ms, asked->us};
  return fmt::format("{}: {}, {} in all \u00b7 {}", numbered(calls, "call"),
                     label_of(asked->kernel, asked->reorder),
                     duration(cost.total_us(static_cast<double>(calls))), text);
}

}  // namespace spmmbench
