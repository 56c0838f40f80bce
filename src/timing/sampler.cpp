#include "timing/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "gpu/backend.hpp"
#include "timing/quantiles.hpp"

namespace spmmbench {
namespace {

double time_us(
    Device& device, const LaunchAt& launch, int count, const SamplerOptions& options,
    const Batch::Meanwhile& meanwhile = [] {}) {
  int at = 0;
  const auto next = [&] { launch(at++); };
  if (!options.by_host_clock && device.info().kind == DeviceKind::cuda)
    return cuda_time_beside_us(next, count, meanwhile, device);
  if (!options.by_host_clock) return device.time_us(next, count);
  device.wait_idle();
  const double start = steady_seconds();
  for (int i = 0; i < count; ++i) next();
  device.wait_idle();
  return (steady_seconds() - start) * 1e6;
}

// A batch that can be launched many times. On a GPU it is a CUDA graph, so that kernels shorter
// than the host's overhead can be timed.
Batch record(Device& device, const LaunchAt& launch, int count, const SamplerOptions& options) {
  const bool on_gpu = device.info().kind == DeviceKind::cuda;
  if (!options.by_host_clock && on_gpu) {
    const auto next = [&launch, at = std::make_shared<int>(0)] { launch((*at)++); };
    const GraphKind kind = options.apart ? GraphKind::apart : GraphKind::in_order;
    if (const auto replay = cuda_record(next, count, kind, device))
      return {count,
              [replay](int launches, const Batch::Meanwhile& meanwhile) {
                return replay->first(launches, meanwhile);
              },
              [replay](int launches) { replay->make_ready(launches); }};
  }
  return {on_gpu && options.apart ? 1 : count,
          [&device, &launch, options](int launches, const Batch::Meanwhile& meanwhile) {
            return time_us(device, launch, launches, options, meanwhile);
          }};
}

// Launches of `each_us` that last as long as a sample.
int batch_for(double each_us, const SamplerOptions& options) {
  return static_cast<int>(std::clamp(std::ceil(options.sample_us / std::max(each_us, 1e-3)), 1.0,
                                     static_cast<double>(options.max_batch)));
}

}  // namespace

Timing sample_hot(Device& device, const LaunchAt& launch, const SampleLimits& limits,
                  const SamplerOptions& options, const AroundSample& around, const Clock& clock) {
  // The time of a single launch includes the overhead of events, so the size of a batch is chosen
  // by the time of a small one.
  constexpr int kAtATime = 8, kMostWarmups = 2 + 256;
  double warm_us = 0, each_us = 0;
  for (int i = 0; i < 2 || (warm_us < options.warmup_us && i < kMostWarmups);) {
    const int count = i >= 2 && each_us < options.sample_us ? kAtATime : 1;
    const double us = time_us(device, launch, count, options);
    warm_us += us;
    each_us = us / count;
    i += count;
  }
  int wanted = batch_for(each_us, options);
  for (;;) {
    const Batch recorded = record(device, launch, wanted, options);
    const int batch = recorded.launches;
    const auto meanwhile = [&] { around.meanwhile(recorded); };
    around.begin();
    recorded.first(batch, [&] { around.warming(recorded); });
    std::vector<double> samples;
    const double start = clock();
    while (!limits.enough(samples, clock() - start)) {
      around.before(batch);
      samples.push_back(recorded.first(batch, meanwhile) / batch);
      around.after(recorded);
    }
    around.end(recorded);
    Timing timing = summarise(std::move(samples), batch);
    // Where the host was held up, the launches of the small batch looked longer than they are.
    if (timing.median_us * batch >= options.sample_us / 2 || batch == options.max_batch ||
        batch < wanted)
      return timing;
    wanted = batch_for(timing.median_us, options);
  }
}

Timing sample_cold(Device& device, const LaunchAt& launch, const SampleLimits& limits,
                   const SamplerOptions& options, const AroundSample& around, const Clock& clock) {
  const Batch single = {1, [&](int, const Batch::Meanwhile& meanwhile) {
                          return time_us(device, launch, 1, options, meanwhile);
                        }};
  const auto meanwhile = [&] { around.meanwhile(single); };
  std::vector<double> samples;
  const double start = clock();
  while (!limits.enough(samples, clock() - start)) {
    around.before(1);
    device.flush_cache();
    around.flushed();
    samples.push_back(single.first(1, meanwhile));
    around.after(single);
  }
  around.end(single);
  return summarise(std::move(samples), 1);
}

void launch_batch(Device& device, const LaunchAt& launch, int count, const SamplerOptions& options,
                  const Batch::Meanwhile& meanwhile) {
  record(device, launch, count, options).first(count, meanwhile);
}

}  // namespace spmmbench
