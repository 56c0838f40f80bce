#include "timing/throttling.hpp"

#include <chrono>
#include <thread>

namespace spmmbench {

std::uint64_t slowing_reasons(const ClockState& state) {
  constexpr std::uint64_t kSlowing = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;  // nvmlClocksThrottleReason*
  return state.throttle_reasons.value_or(0) & kSlowing;
}

void rest_device() { std::this_thread::sleep_for(std::chrono::duration<double>(kRestSeconds)); }

SteadyTiming sample_steadily(Device& device, const std::function<Timing()>& sample,
                             const std::function<void()>& rest) {
  SteadyTiming steady;
  for (;; ++steady.repeats) {
    steady.timing = sample();
    steady.reasons = slowing_reasons(device.clocks());
    if (steady.reasons == 0 || steady.repeats == kThrottledRepeats) return steady;
    rest();
  }
}

}  // namespace spmmbench
