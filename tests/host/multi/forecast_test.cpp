// What a product on several GPUs should take.

#include <gtest/gtest.h>

#include <algorithm>

#include "multi/forecast.hpp"

namespace spmmbench {
namespace {

TEST(Forecast, ALinkIsTheLineThroughItsPoints) {
  const Link link({{1000, 10}, {11'000, 30}, {101'000, 120}});
  EXPECT_EQ(link.us(0), 0);
  EXPECT_EQ(link.us(10), 10);
  EXPECT_EQ(link.us(1000), 10);
  EXPECT_EQ(link.us(6000), 20);
  EXPECT_EQ(link.us(101'000), 120);
  EXPECT_EQ(link.us(201'000), 220);
  EXPECT_EQ(link.latency_us(), 10);
  EXPECT_EQ(link.bytes_per_us(), 1000);
}

TEST(Forecast, ALargeTransferThatSeemedFasterGivesARateAllTheSame) {
  const Link link({{1000, 90}, {101'000, 80}});
  EXPECT_EQ(link.us(50'000), 90);
  EXPECT_GT(link.bytes_per_us(), 0);
}

// t_1 > f K N s / W: a million rows of 128 fp16 values over 386 GB/s take 663 us.
TEST(Forecast, WithoutLatencyASplitPaysFromTheTimeOfMovingTheShareOfAllOfB) {
  const Link link({{0, 0}, {386e3, 1}});
  const double all_of_b = 1e6 * 128 * 2;
  for (const int gpus : {2, 4, 8})
    for (const double share : {0.1, 1.0}) {
      const double received = share * (1 - 1.0 / gpus) * all_of_b;
      EXPECT_NEAR(pays_from_us({.us = link.us(received)}, gpus), share * 663.2, 0.1);
    }
}

TEST(Forecast, AGatherBesideInnerRowsTakesOnlyWhatIsLongerThanThey) {
  const Gathering gathering = {.us = 50, .inner_share = 0.9};
  EXPECT_DOUBLE_EQ(one_after_another_us(100, gathering), 150);
  EXPECT_DOUBLE_EQ(overlapped_us(100, gathering), 100 + kGatherShare * 50 + kForkUs);
  EXPECT_DOUBLE_EQ(overlapped_us(10, gathering), 50 + 1 + kForkUs);
}

TEST(Forecast, ASplitPaysFromTheTimeAtWhichItsFasterWayTakesAsLongAsOneGpu) {
  for (const int gpus : {2, 4})
    for (const double share : {0.0, 0.5, 1.0})
      for (const double us : {1.0, 20.0, 400.0}) {
        const Gathering gathering = {.us = us, .inner_share = share};
        const double from = pays_from_us(gathering, gpus);
        EXPECT_NEAR(std::min(one_after_another_us(from / gpus, gathering),
                             overlapped_us(from / gpus, gathering)),
                    from, 1e-9 * from);
      }
  EXPECT_EQ(pays_from_us({}, 2), 0);
}

TEST(Forecast, RowsThatAreReadInPlaceHideBehindTheProduct) {
  constexpr double kMeetUs = 4;
  EXPECT_EQ(pays_from_us_in_place(kMeetUs, 1, 2), 8);
  EXPECT_EQ(pays_from_us_in_place(kMeetUs, 100, 2), 104);
  EXPECT_EQ(pays_from_us_in_place(kMeetUs, 100, 1024), 104);
}

}  // namespace
}  // namespace spmmbench
