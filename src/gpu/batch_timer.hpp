#pragma once
// Times of several batches of launches for which the host waits once.

#include <functional>
#include <utility>
#include <vector>

#include "spmmbench/device.hpp"

namespace spmmbench {

// Device::time_us of each of this many batches, one after another.
using TimesOfBatches = std::function<std::vector<double>(int batches)>;

// A device that can hold its stream until all batches are enqueued, so that launches which take
// less time than the host takes to enqueue them are timed as they run.
class BatchTimer {
 public:
  virtual ~BatchTimer() = default;

  // Of batches of `count` launches. `in_graph`: a batch is a CUDA graph where launches can be
  // captured, as Device::record says. What `launch` refers to outlives what is returned.
  virtual TimesOfBatches times_of(std::function<void()> launch, int count, bool in_graph) = 0;
};

// The same of any device.
inline TimesOfBatches times_of(Device& device, std::function<void()> launch, int count,
                               bool in_graph) {
  if (auto* const timer = dynamic_cast<BatchTimer*>(&device))
    return timer->times_of(std::move(launch), count, in_graph);
  return [&device, launch = std::move(launch), count](int batches) {
    std::vector<double> us(batches);
    for (double& one : us) one = device.time_us(launch, count);
    return us;
  };
}

// Enqueues a CUDA graph of `count` launches, which lies on the device already. Null where they
// cannot be captured.
std::function<void()> cuda_batch(const std::function<void()>& launch, int count, Device& device);

}  // namespace spmmbench
