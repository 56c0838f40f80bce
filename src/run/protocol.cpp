#include "run/protocol.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "spmmbench/error.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {

std::map<std::string, std::string> protocol_of(const RunOptions& options) {
  std::vector<std::int64_t> dims;
  if (options.load.dims) dims = {options.load.dims->first, options.load.dims->second};
  if (options.b_dims) dims.push_back(options.b_dims->second);
  return {{"noise_limit", fmt::format("{}", options.limits.noise)},
          {"min_samples", fmt::format("{}", options.limits.min_samples)},
          {"max_samples", fmt::format("{}", options.limits.max_samples)},
          {"max_seconds", fmt::format("{}", options.limits.max_seconds)},
          {"prune", to_printable(options.load.prune)},
          {"b_file", to_printable(options.b_file)},
          {"bin_type", std::string(to_string(options.load.bin_type))},
          {"dims", fmt::format("{}", fmt::join(dims, " "))},
          {"isolated", options.isolate ? "yes" : "no"}};
}

RunOptions options_of(const RunContext& context) {
  const Options settings(context.protocol);
  for (const char* name : {"noise_limit", "min_samples", "max_samples", "max_seconds"})
    if (!settings.has(name)) throw Error(fmt::format("the run's protocol has no {}", name));
  RunOptions options;
  options.limits.noise = settings.get_double("noise_limit", 0);
  options.limits.min_samples = static_cast<int>(settings.get_int("min_samples", 0, 1, 1 << 30));
  options.limits.max_samples = static_cast<int>(settings.get_int("max_samples", 0, 1, 1 << 30));
  options.limits.max_seconds = settings.get_double("max_seconds", 0);
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
