// Finds differences that keep runs from being compared.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "plugin/plugin.hpp"
#include "report/comparison.hpp"

namespace spmmbench {
namespace {

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

}  // namespace

std::string difference(const RunContext& a, const RunContext& b) {
  const auto differs = [](std::string_view field, const auto& one, const auto& other) {
    return fmt::format("{} differs: '{}' and '{}'", field, one, other);
  };
  if (a.device.name != b.device.name) return differs("device.name", a.device.name, b.device.name);
  if (a.device.sm_count != b.device.sm_count)
    return differs("device.sm_count", a.device.sm_count, b.device.sm_count);
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

bool share_a_measurement(const ResultDocument& a, const ResultDocument& b) {
  const auto run_of = [](const RunContext& context) {
    return std::tie(context.started_utc, context.hostname, context.argv, context.device.uuid);
  };
  if (run_of(a.context) != run_of(b.context)) return false;
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
    const std::string what = difference(first.document.context, context);
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
