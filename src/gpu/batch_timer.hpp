#pragma once
// Times of several batches of launches for which the host waits once.

#include <functional>
#include <vector>

#include "spmmbench/device.hpp"

namespace spmmbench {

// A device that can hold its stream until all launches are enqueued, so that those which take less
// time than the host takes to enqueue them are timed as they run.
class BatchTimer {
 public:
  virtual ~BatchTimer() = default;

  // Device::time_us of each of several batches of `count` launches, one after another.
  virtual std::vector<double> times_us(const std::function<void()>& launch, int count,
                                       int batches) = 0;
};

// The same of any device.
inline std::vector<double> times_us(Device& device, const std::function<void()>& launch, int count,
                                    int batches) {
  if (auto* const timer = dynamic_cast<BatchTimer*>(&device))
    return timer->times_us(launch, count, batches);
  std::vector<double> us(batches);
  for (double& one : us) one = device.time_us(launch, count);
  return us;
}

}  // namespace spmmbench
