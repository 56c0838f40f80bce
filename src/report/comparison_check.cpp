// Finds differences that keep runs from being compared.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/contains.hpp"
#include "plugin/plugin.hpp"
#include "report/comparison.hpp"
#include "report/machine_and_build.hpp"
#include "report/warnings.hpp"
#include "timing/throttling.hpp"

namespace spmmbench {
namespace {

const std::vector<std::string> kOfEveryBuild = {"tool_version", "git_revision", "build_id"};

std::set<std::string> precisions_of(const ResultDocument& document) {
  std::set<std::string> found;
  for (const ResultRow& row : document.rows) found.insert(row.precision);
  return found;
}

// Each precision of a side must be on the other side too, in whichever of its documents.
void require_precisions(const std::vector<InputDocument>& side,
                        const std::vector<InputDocument>& other) {
  std::set<std::string> there;
  for (const InputDocument& input : other) there.merge(precisions_of(input.document));
  for (const InputDocument& input : side)
    for (const std::string& precision : precisions_of(input.document))
      if (!there.contains(precision))
        throw Error(fmt::format("{} and {}: rows.precision differs: {} is in {} only", input.path,
                                other.front().path, precision, input.path),
                    ExitCode::not_comparable);
}

// The mean of what NVML said before, or after, the runs of a side; 0 where it said nothing.
double mean_clock(const std::vector<InputDocument>& side, ClockState RunContext::*when,
                  std::optional<unsigned> ClockState::*clock) {
  double sum = 0;
  int count = 0;
  for (const InputDocument& input : side)
    if (const std::optional<unsigned> mhz = input.document.context.*when.*clock) {
      sum += *mhz;
      ++count;
    }
  return count > 0 ? sum / count : 0;
}

bool was_slowed(const InputDocument& input) {
  const RunContext& context = input.document.context;
  const auto slows = [](const ClockState& state) { return slowing_reasons(state) != 0; };
  const std::vector<ResultRow>& rows = input.document.rows;
  return slows(context.clocks_before) || slows(context.clocks_after) ||
         std::any_of(rows.begin(), rows.end(), [](const ResultRow& row) {
           return row.metrics.contains("throttle_reasons");  // where they slow
         });
}

}  // namespace

std::string other_conditions(const std::vector<InputDocument>& base,
                             const std::vector<InputDocument>& fresh) {
  std::vector<std::string> found;
  for (const auto* side : {&base, &fresh})
    for (const InputDocument& input : *side)
      for (const Difference& one :
           differences_of_machine_and_build(base.front().document.context, input.document.context))
        if (!contains(kOfEveryBuild, one.field) && !contains(found, one.field))
          found.push_back(one.field);
  for (const auto& [name, clock] : {std::pair("SM clock", &ClockState::sm_mhz),
                                    std::pair("memory clock", &ClockState::memory_mhz)})
    for (const auto& [moment, when] : {std::pair("before", &RunContext::clocks_before),
                                       std::pair("after", &RunContext::clocks_after)}) {
      const double one = mean_clock(base, when, clock), other = mean_clock(fresh, when, clock);
      if (std::min(one, other) > 0 && std::max(one, other) > kSameClock * std::min(one, other))
        found.push_back(
            fmt::format("{} {} them ({:.0f} and {:.0f} MHz)", name, moment, one, other));
    }
  const bool base_slowed = std::any_of(base.begin(), base.end(), was_slowed);
  if (base_slowed != std::any_of(fresh.begin(), fresh.end(), was_slowed))
    found.push_back(fmt::format("throttle reasons (in {} only)", base_slowed ? "BASE" : "NEW"));
  if (found.empty()) return {};
  return fmt::format("the runs differ in {}", fmt::join(found, ", "));
}

std::string difference(const RunContext& a, const RunContext& b, bool cold) {
  const auto differs = [](std::string_view field, const auto& one, const auto& other) {
    return fmt::format("{} differs: '{}' and '{}'", field, one, other);
  };
  if (a.device.name != b.device.name) return differs("device.name", a.device.name, b.device.name);
  if (a.device.sm_count != b.device.sm_count)
    return differs("device.sm_count", a.device.sm_count, b.device.sm_count);
  const std::size_t size = a.device.l2_bytes, other_size = b.device.l2_bytes;
  if (cold && size != other_size && size > 0 && other_size > 0)
    return differs("device.l2_bytes", size, other_size);
  if (a.seed != b.seed) return differs("seed", a.seed, b.seed);
  for (const auto& [key, value] : a.protocol) {
    const auto other = b.protocol.find(key);
    // Where a case runs, and which build of a plug-in, is not how it is sampled.
    if (key == "isolated" || key.starts_with(kPluginInProtocol)) continue;
    if (other != b.protocol.end() && other->second != value)
      return differs("protocol." + key, value, other->second);
  }
  return {};
}

bool is_merged(const RunContext& context) {
  return context.argv.size() > 1 && context.argv[1] == "merge";
}

bool share_a_measurement(const ResultDocument& a, const ResultDocument& b) {
  const auto run_of = [](const RunContext& context) {
    return std::tie(context.started_utc, context.hostname, context.argv, context.device.uuid);
  };
  // What `merge` wrote has measurements of the runs that it read.
  if (run_of(a.context) != run_of(b.context) && !is_merged(a.context) && !is_merged(b.context))
    return false;
  const auto samples_of = [](const ResultRow& row) {
    return row.hot ? row.hot->samples_us : std::vector<double>{};
  };
  std::map<std::string, std::vector<double>> samples;
  ComparisonKeys keys, other_keys;
  for (const ResultRow& row : a.rows) samples[keys.next(row)] = samples_of(row);
  return std::any_of(b.rows.begin(), b.rows.end(), [&](const ResultRow& row) {
    const auto it = samples.find(other_keys.next(row));
    return it != samples.end() && !it->second.empty() && it->second == samples_of(row);
  });
}

void require_comparable(const std::vector<InputDocument>& base,
                        const std::vector<InputDocument>& fresh, const ComparisonOptions& options) {
  if (options.force) return;
  const InputDocument& first = base.front();
  const auto check = [&](const RunContext& context, const std::string& path) {
    const std::string what = difference(first.document.context, context, options.cold);
    if (!what.empty())
      throw Error(fmt::format("{} and {}: {}", first.path, path, what), ExitCode::not_comparable);
  };
  for (const auto* side : {&base, &fresh})
    for (const InputDocument& input : *side) check(input.document.context, input.path);
  if (options.calibration) check(options.calibration->context(), options.calibration_path);
  require_precisions(base, fresh);
  require_precisions(fresh, base);
}

}  // namespace spmmbench
