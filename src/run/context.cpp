#include "run/context.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <ctime>

#include "revision.hpp"
#include "stats/quantiles.hpp"

namespace spmmbench {

RunContext collect_context(const std::vector<std::string>& argv, std::uint64_t seed, Device& device,
                           const DeviceRates& rates) {
  RunContext context;
  context.tool_version = SPMMBENCH_VERSION;
  context.git_revision = SPMMBENCH_REVISION;
  context.build_flags = SPMMBENCH_BUILD_FLAGS;
  context.started_utc = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) context.hostname = host.data();
  context.argv = argv;
  context.seed = seed;
  context.device = device.info();
  context.clocks_before = device.clocks();
  context.copy_gb_per_s = rates.copy_bytes_per_second / 1e9;
  if (rates.gather_bytes_per_second > 0)
    context.gather_gb_per_s = rates.gather_bytes_per_second / 1e9;
  if (rates.dense_flops_per_second > 0) context.dense_tflops = rates.dense_flops_per_second / 1e12;
  std::vector<double> empty;
  for (int i = 0; i < 21; ++i) empty.push_back(device.time_us([] {}, 1));
  context.timer_floor_us = quantile(empty, 0.5);
  return context;
}

std::string tool_version() { return fmt::format("{} ({})", SPMMBENCH_VERSION, SPMMBENCH_REVISION); }

}  // namespace spmmbench
