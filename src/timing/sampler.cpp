#include "timing/sampler.hpp"

#include <algorithm>
#include <cmath>

#include "timing/quantiles.hpp"

namespace spmmbench {
namespace {

double time_us(Device& device, const std::function<void()>& launch, int count,
               const SamplerOptions& options) {
  if (!options.by_host_clock) return device.time_us(launch, count);
  device.wait_idle();
  const double start = steady_seconds();
  for (int i = 0; i < count; ++i) launch();
  device.wait_idle();
  return (steady_seconds() - start) * 1e6;
}

// Launches of `each_us` that last as long as a sample.
int batch_for(double each_us, const SamplerOptions& options) {
  return static_cast<int>(std::clamp(std::ceil(options.sample_us / std::max(each_us, 1e-3)), 1.0,
                                     static_cast<double>(options.max_batch)));
}

}  // namespace

Timing sample_hot(Device& device, const std::function<void()>& launch, const SampleLimits& limits,
                  const SamplerOptions& options, const std::function<void()>& poll,
                  const Clock& clock) {
  double warm_us = 0, last_us = 0;
  for (int i = 0; i < 2 || (warm_us < options.warmup_us && i < options.max_batch); ++i) {
    last_us = time_us(device, launch, 1, options);
    warm_us += last_us;
  }
  // The time of a single launch includes the overhead of events, so the size of a batch is chosen
  // by the time of a small one.
  const double each_us =
      last_us < options.sample_us ? time_us(device, launch, 8, options) / 8 : last_us;
  int batch = batch_for(each_us, options);
  for (;;) {
    const std::function<double()> replay =
        options.by_host_clock ? [&] { return time_us(device, launch, batch, options); }
                              : device.record(launch, batch);
    replay();
    std::vector<double> samples;
    const double start = clock();
    while (!limits.enough(samples, clock() - start)) {
      poll();
      samples.push_back(replay() / batch);
    }
    Timing timing = summarise(std::move(samples), batch);
    // Where the host was held up, the launches of the small batch looked longer than they are.
    if (timing.median_us * batch >= options.sample_us / 2 || batch == options.max_batch)
      return timing;
    batch = batch_for(timing.median_us, options);
  }
}

Timing sample_cold(Device& device, const std::function<void()>& launch, const SampleLimits& limits,
                   const SamplerOptions& options, const std::function<void()>& poll,
                   const Clock& clock) {
  std::vector<double> samples;
  const double start = clock();
  while (!limits.enough(samples, clock() - start)) {
    poll();
    device.flush_cache();
    samples.push_back(time_us(device, launch, 1, options));
  }
  return summarise(std::move(samples), 1);
}

}  // namespace spmmbench
