#include "timing/throttling.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "fake_device.hpp"
#include "timing/quantiles.hpp"

namespace spmmbench {
namespace {

constexpr std::uint64_t kIdle = 0x1, kPowerCap = 0x4, kHot = 0x40;

// Its clocks have these reasons, one after the other; the last repeats.
class ThrottledDevice final : public FakeDevice {
 public:
  explicit ThrottledDevice(std::vector<std::uint64_t> reasons) : reasons_(std::move(reasons)) {}
  ClockState clocks() override {
    ClockState state;
    state.throttle_reasons = reasons_[std::min(asked_++, reasons_.size() - 1)];
    return state;
  }

 private:
  std::vector<std::uint64_t> reasons_;
  std::size_t asked_ = 0;
};

struct Outcome {
  SteadyTiming steady;
  int samples = 0, rests = 0;
};

Outcome outcome_of(std::vector<std::uint64_t> reasons) {
  ThrottledDevice device(std::move(reasons));
  Outcome out;
  out.steady = sample_steadily(
      device, [&] { return summarise({static_cast<double>(++out.samples)}, 1); },
      [&] { ++out.rests; });
  return out;
}

TEST(Throttling, SamplesOfADeviceThatIsNotSlowedDownAreTakenOnce) {
  for (const std::uint64_t reasons : {std::uint64_t{0}, kIdle}) {
    const Outcome out = outcome_of({reasons});
    EXPECT_EQ(out.samples, 1);
    EXPECT_EQ(out.rests, 0);
    EXPECT_EQ(out.steady.repeats, 0);
    EXPECT_EQ(out.steady.reasons, 0U);
  }
}

TEST(Throttling, ThrottledSamplesAreTakenAgainAfterARest) {
  const Outcome out = outcome_of({kPowerCap, kHot | kIdle, 0});
  EXPECT_EQ(out.steady.timing.samples_us, std::vector<double>{3}) << "the others are given up";
  EXPECT_EQ(out.steady.repeats, 2);
  EXPECT_EQ(out.rests, 2);
  EXPECT_EQ(out.steady.reasons, 0U);
}

TEST(Throttling, ADeviceThatStaysSlowIsGivenUpOnWithItsReasons) {
  const Outcome out = outcome_of({kPowerCap, kHot | kIdle});
  EXPECT_EQ(out.samples, 1 + kThrottledRepeats);
  EXPECT_EQ(out.rests, kThrottledRepeats);
  EXPECT_EQ(out.steady.reasons, kHot);
}

TEST(Throttling, ADeviceThatDoesNotSayIsNotSlow) { EXPECT_EQ(slowing_reasons({}), 0U); }

}  // namespace
}  // namespace spmmbench
