#pragma once
// Hot and cold timing of one launch function on a device.

#include <functional>

#include "core/steady_seconds.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/measurement.hpp"
#include "timing/stopping.hpp"

namespace spmmbench {

struct SamplerOptions {
  double warmup_us = 5'000;  // launches before the first sample, at least two
  double sample_us = 500;    // hot: launches are batched until a sample lasts this long
  int max_batch = 256;
  // For launches that work on other streams: times by the host's clock, from an idle device to an
  // idle device.
  bool by_host_clock = false;
};

using Clock = std::function<double()>;  // seconds; replaced by a fake in tests

// Hot: back-to-back launches over one buffer set, time per launch. `poll` is called between samples
// and may throw.
Timing sample_hot(Device& device, const std::function<void()>& launch, const SampleLimits& limits,
                  const SamplerOptions& options, const std::function<void()>& poll,
                  const Clock& clock = steady_seconds);

// Cold: one launch at a time. The cache is flushed before each, which is not timed.
Timing sample_cold(Device& device, const std::function<void()>& launch, const SampleLimits& limits,
                   const SamplerOptions& options, const std::function<void()>& poll,
                   const Clock& clock = steady_seconds);

}  // namespace spmmbench
