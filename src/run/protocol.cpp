#include "run/protocol.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "plugin/plugin.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/option.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

// The settings of sampling that a recorded protocol must have.
constexpr double kAnySeconds = 1e9;
const auto kNoiseLimit = real_option("noise_limit", "0", 0, kAnySeconds, "");
const auto kMinSamples = integer_option("min_samples", 1, 1, 1 << 30, "");
const auto kMaxSamples = integer_option("max_samples", 1, 1, 1 << 30, "");
const auto kMaxSeconds = real_option("max_seconds", "1", 0, kAnySeconds, "");

}  // namespace

std::map<std::string, std::string> protocol_of(const Cases& cases, const Protocol& how) {
  std::vector<std::int64_t> dims;
  if (cases.load.dims) dims = {cases.load.dims->first, cases.load.dims->second};
  if (cases.b_dims) dims.push_back(cases.b_dims->second);
  std::map<std::string, std::string> protocol = {
      {"noise_limit", fmt::format("{}", how.limits.noise)},
      {"min_samples", fmt::format("{}", how.limits.min_samples)},
      {"max_samples", fmt::format("{}", how.limits.max_samples)},
      {"max_seconds", fmt::format("{}", how.limits.max_seconds)},
      {"prune", to_printable(cases.load.prune)},
      {"b_file", to_printable(cases.b_file)},
      {"bin_type", std::string(to_string(cases.load.bin_type))},
      {"dims", fmt::format("{}", fmt::join(dims, " "))},
      {"isolated", how.isolate ? "yes" : "no"}};
  if (how.interleave) protocol["interleaved"] = "yes";
  if (cases.load.transpose) protocol["transposed"] = "yes";
  for (const auto& [stem, hash] : hashes_of_plugins(cases.kernels))
    protocol[std::string(kPluginInProtocol) + stem] = hash;
  return protocol;
}

Work work_of(const RunContext& context) {
  const Options settings(context.protocol);
  for (const std::string& name :
       {kNoiseLimit.name, kMinSamples.name, kMaxSamples.name, kMaxSeconds.name})
    if (!settings.has(name)) throw Error(fmt::format("the run's protocol has no {}", name));
  Work work;
  work.protocol.limits.noise = kNoiseLimit(settings);
  work.protocol.limits.min_samples = kMinSamples(settings);
  work.protocol.limits.max_samples = kMaxSamples(settings);
  work.protocol.limits.max_seconds = kMaxSeconds(settings);
  work.cases.load.seed = context.seed;
  work.cases.load.prune = from_printable(settings.get("prune", ""));
  work.cases.load.transpose = settings.has("transposed");
  work.cases.b_file = from_printable(settings.get("b_file", ""));
  work.cases.load.bin_type = parse_element_type(settings.get("bin_type", "fp32"));
  std::istringstream sizes(settings.get("dims", ""));
  std::int64_t rows = 0, cols = 0, n = 0;
  if (sizes >> rows >> cols) work.cases.load.dims = {rows, cols};
  if (sizes >> n) work.cases.b_dims = {cols, n};
  work.protocol.device = context.device.kind == DeviceKind::cuda ? context.device.index : -1;
  return work;
}

}  // namespace spmmbench
