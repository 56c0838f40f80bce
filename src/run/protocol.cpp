#include "run/protocol.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>
#include <utility>

#include "io/sha256.hpp"
#include "io/tensor_path.hpp"
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

std::map<std::string, std::string> protocol_of(const RunOptions& options) {
  std::vector<std::int64_t> dims;
  if (options.load.dims) dims = {options.load.dims->first, options.load.dims->second};
  if (options.b_dims) dims.push_back(options.b_dims->second);
  std::map<std::string, std::string> protocol = {
      {"noise_limit", fmt::format("{}", options.limits.noise)},
      {"min_samples", fmt::format("{}", options.limits.min_samples)},
      {"max_samples", fmt::format("{}", options.limits.max_samples)},
      {"max_seconds", fmt::format("{}", options.limits.max_seconds)},
      {"prune", to_printable(options.load.prune)},
      {"b_file", to_printable(options.b_file)},
      {"bin_type", std::string(to_string(options.load.bin_type))},
      {"dims", fmt::format("{}", fmt::join(dims, " "))},
      {"isolated", options.isolate ? "yes" : "no"}};
  // A child writes no document.
  if (!options.b_file.empty() && !(options.json.empty() && options.csv.empty()))
    if (std::string hash = file_sha256(file_of(options.b_file)); !hash.empty())
      protocol["b_sha256"] = std::move(hash);
  for (const auto& [stem, hash] : hashes_of_plugins(options.kernels))
    protocol[std::string(kPluginInProtocol) + stem] = hash;
  return protocol;
}

RunOptions options_of(const RunContext& context) {
  const Options settings(context.protocol);
  for (const std::string& name :
       {kNoiseLimit.name, kMinSamples.name, kMaxSamples.name, kMaxSeconds.name})
    if (!settings.has(name)) throw Error(fmt::format("the run's protocol has no {}", name));
  RunOptions options;
  options.limits.noise = kNoiseLimit(settings);
  options.limits.min_samples = kMinSamples(settings);
  options.limits.max_samples = kMaxSamples(settings);
  options.limits.max_seconds = kMaxSeconds(settings);
  options.load.seed = context.seed;
  options.load.prune = from_printable(settings.get("prune", ""));
  options.b_file = from_printable(settings.get("b_file", ""));
  options.load.bin_type = parse_element_type(settings.get("bin_type", "fp32"));
  std::istringstream sizes(settings.get("dims", ""));
  std::int64_t rows = 0, cols = 0, n = 0;
  if (sizes >> rows >> cols) options.load.dims = {rows, cols};
  if (sizes >> n) options.b_dims = {cols, n};
  options.device = context.device.kind == DeviceKind::cuda ? context.device.index : -1;
  return options;
}

}  // namespace spmmbench
