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
  // On a GPU: no launch begins before the one before it has ended, or is enqueued behind it by the
  // host: it cannot tell whether it has followers. Those that cannot be captured are samples of
  // their own.
  bool apart = false;
};

using Clock = std::function<double()>;  // seconds; replaced by a fake in tests

// Launches the product. Launches of a batch are counted from 0.
using LaunchAt = std::function<void(int at)>;

// A batch of launches.
struct Batch {
  using Meanwhile = std::function<void()>;

  int launches;
  std::function<double(int launches, const Meanwhile&)> launch_first;
  // What first(n) needs. May be called while others run.
  std::function<void(int launches)> make_ready = [](int) {};

  // Launches the first n of it once more, in the same way: a launch cannot tell whether it is the
  // last. `meanwhile` is called once they are enqueued; not where the host launches or times them.
  double first(
      int n, const Meanwhile& meanwhile = [] {}) const {
    return launch_first(n, meanwhile);
  }
};

// What happens around each sample, outside of its time. All may throw. `meanwhile` is called as
// that of Batch::first.
struct AroundSample {
  std::function<void()> begin = [] {};  // hot: before the batch that warms up for the samples
  std::function<void(const Batch&)> warming = [](const Batch&) {};  // while it runs
  std::function<void(int launches)> before = [](int) {};
  std::function<void()> flushed = [] {};  // cold: behind the flush of the cache, on the stream
  std::function<void(const Batch&)> meanwhile = [](const Batch&) {};
  std::function<void(const Batch&)> after = [](const Batch&) {};
  std::function<void(const Batch&)> end = [](const Batch&) {};  // after all samples
};

// Hot: back-to-back launches over one buffer set, time per launch.
Timing sample_hot(Device& device, const LaunchAt& launch, const SampleLimits& limits,
                  const SamplerOptions& options, const AroundSample& around,
                  const Clock& clock = steady_seconds);

// Cold: one launch at a time. The cache is flushed before each, which is not timed.
Timing sample_cold(Device& device, const LaunchAt& launch, const SampleLimits& limits,
                   const SamplerOptions& options, const AroundSample& around,
                   const Clock& clock = steady_seconds);

// One batch, as a sample of sample_hot launches it.
void launch_batch(
    Device& device, const LaunchAt& launch, int count, const SamplerOptions& options,
    const Batch::Meanwhile& meanwhile = [] {});

}  // namespace spmmbench
