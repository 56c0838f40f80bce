#include "run/machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/numbered.hpp"
#include "gpu/backend.hpp"
#include "gpu/nvml.hpp"
#include "io/output.hpp"
#include "select/device_rates.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

// Processes on the CPU that show how a product is divided: as many as the GPUs of some hosts.
constexpr int kMostHostRanks = 64;

Machine open_machine(const RunOptions& options) {
  Machine machine;
  machine.host = open_host_device();
  const CudaProbe cuda = probe_cuda();
  const auto count = static_cast<int>(cuda.devices.size());
  // Ranks that this process starts have the first devices.
  const bool starts_ranks = options.cases.gpus > 1 && options.protocol.place.meeting.empty() &&
                            options.machines.devices.empty();
  const bool on_gpus = options.protocol.device >= 0;
  if (starts_ranks && !on_gpus && options.cases.gpus > kMostHostRanks)
    throw Error(fmt::format("--gpus {}: expected at most {} processes on the CPU",
                            options.cases.gpus, kMostHostRanks));
  if (starts_ranks && on_gpus && options.cases.gpus > count)
    throw Error(fmt::format(
        "--gpus {}: this machine has {}; with --device -1 processes on the CPU take their place",
        options.cases.gpus, numbered(count, "CUDA device")));
  std::vector<int> wanted = options.machines.devices;
  if (wanted.empty()) wanted = {options.protocol.device};
  for (const int index : wanted) {
    // Where there is no GPU, the default device 0 means the CPU kernels.
    if (index >= count && (count > 0 || index > 0 || !options.machines.devices.empty()))
      throw Error(
          fmt::format("device {}: this machine has {}", index, numbered(count, "CUDA device")));
    if (index >= 0 && index < count && cuda.devices[index].name != cuda.devices[wanted[0]].name)
      throw Error(fmt::format("devices {} are of different models", fmt::join(wanted, ",")));
  }
  if (wanted[0] >= 0 && count > 0) machine.gpu = open_cuda_device(wanted[0]);
  else if (!options.outputs.quiet)
    say("spmmbench: {}: running the CPU kernels\n",
        wanted[0] < 0 ? "no GPU asked for" : cuda.reason);
  return machine;
}

void Machine::give_back_gpu() {
  if (!gpu) return;
  const DeviceInfo info = gpu->info();
  gpu.reset();
  end_cuda_context(info.index);
  given_back = info.uuid;
}

ClockState Machine::clocks() const {
  return given_back.empty() ? main().clocks() : nvml_clock_state(given_back);
}

DeviceRates rates_for(const DeviceRates& known, const std::vector<PrecisionGroup>& groups,
                      Device& device) {
  if (known.copy_bytes_per_second > 0) set_rates(device.info(), known);
  const auto asks = [](const KernelChoice& choice) { return choice.kernel->info().asks_for_rates; };
  for (const PrecisionGroup& group : groups)
    if (std::any_of(group.kernels.begin(), group.kernels.end(), asks)) return rates_of(device);
  DeviceRates rates = known;
  if (rates.copy_bytes_per_second == 0)
    rates.copy_bytes_per_second = device.copy_bytes_per_second();
  return rates;
}

}  // namespace spmmbench
