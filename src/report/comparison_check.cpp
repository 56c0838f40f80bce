// Finds differences that keep runs from being compared.

#include <fmt/format.h>

#include <set>

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
