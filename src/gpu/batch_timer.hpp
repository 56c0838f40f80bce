#pragma once
// The time of a batch of launches that follow one another without the host.

#include <functional>

#include "spmmbench/device.hpp"

namespace spmmbench {

// A device that can hold its stream until a batch is enqueued, so that launches which take less
// time than the host takes to enqueue them are timed as they run.
class BatchTimer {
 public:
  virtual ~BatchTimer() = default;

  // Device::time_us of `count` launches. `in_graph`: as a CUDA graph where launches can be
  // captured, as Device::record says.
  virtual double batch_us(const std::function<void()>& launch, int count, bool in_graph) = 0;
};

// The same of any device.
inline double batch_us(Device& device, const std::function<void()>& launch, int count,
                       bool in_graph) {
  if (auto* const timer = dynamic_cast<BatchTimer*>(&device))
    return timer->batch_us(launch, count, in_graph);
  return device.time_us(launch, count);
}

// Enqueues a CUDA graph of `count` launches, which lies on the device already. Null where they
// cannot be captured.
std::function<void()> cuda_batch(const std::function<void()>& launch, int count, Device& device);

}  // namespace spmmbench
