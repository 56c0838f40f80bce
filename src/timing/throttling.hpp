#pragma once
// Samples that were taken while the GPU had lowered its clocks are taken again.

#include <cstdint>
#include <functional>

#include "spmmbench/device.hpp"
#include "spmmbench/measurement.hpp"

namespace spmmbench {

// Those of the state's reasons for lower clocks that make times longer than the device's own, as
// NVML's bits: power cap, hardware slowdown, software and hardware thermal slowdown, power brake.
// Idle and application clocks are not among them.
std::uint64_t slowing_reasons(const ClockState& state);

// Choices: clocks rise within milliseconds once less power is drawn, and a device that stays slow
// costs a run at most these repeats a row.
inline constexpr int kThrottledRepeats = 3;
inline constexpr double kRestSeconds = 0.2;
void rest_device();  // sleeps so long

struct SteadyTiming {
  Timing timing;
  int repeats = 0;            // timings before it that were given up
  std::uint64_t reasons = 0;  // that slowed the device down at the end of `timing`
};

// What `sample` gives. While something slows the device down at its end, it is repeated after a
// rest, kThrottledRepeats times at most.
SteadyTiming sample_steadily(Device& device, const std::function<Timing()>& sample,
                             const std::function<void()>& rest = rest_device);

}  // namespace spmmbench
