#pragma once
// The devices that this process measures on.

#include <memory>
#include <string>
#include <vector>

#include "gpu/rates.hpp"
#include "run/options.hpp"
#include "run/plan.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench {

struct Machine {
  std::unique_ptr<Device> host, gpu;  // gpu: null when there is none or none is asked for
  std::string lost_in;                // the kernel that left the GPU unusable; empty while it works
  Device& main() const { return gpu ? *gpu : *host; }

  // Before other processes measure on the GPU: a process that uses it holds some of its memory.
  void give_back_gpu();
  ClockState clocks() const;  // of the GPU, also of one that was given back

  std::string given_back;  // its UUID
};

// Opens `--device`, or the first of `--devices`. These must all be of one model, because a document
// describes one model only. Throws Error.
Machine open_machine(const RunOptions& options);

// The rates of the device: `known`, and those that it lacks measured: the copy always, the others
// if a kernel asks for them.
DeviceRates rates_for(const DeviceRates& known, const std::vector<PrecisionGroup>& groups,
                      Device& device);

}  // namespace spmmbench
