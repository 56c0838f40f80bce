// Shared memory that gives each multiprocessor an even share of a launch's CTAs.

#include <gtest/gtest.h>

#include "../../kernels/window/launch.hpp"

namespace spmmbench::test {
namespace {

constexpr std::int64_t kSms = 132, kPlaces = 18;       // of an H200; of a multiprocessor
constexpr std::size_t kNeeded = 7680, kSystem = 1024;  // bytes of a CTA
constexpr std::size_t kOfSm = std::size_t{228} << 10;  // bytes of a multiprocessor

std::size_t bytes_of_cta(std::int64_t ctas, unsigned side_by_side = 1) {
  window::LaunchShape launch;
  launch.feature_tile_groups = side_by_side;
  launch.shared_bytes = kNeeded;
  launch.resident_ctas = kSms * kPlaces;
  DeviceInfo device;
  device.sm_count = kSms;
  device.shared_per_block = kOfSm - kSystem;
  return window::even_share_bytes(launch, ctas, device);
}

TEST(EvenShare, AMultiprocessorHasRoomForNoMoreThanItsShare) {
  for (std::int64_t share = 4; share < kPlaces; ++share) {
    SCOPED_TRACE(share);
    for (const std::int64_t ctas : {share * kSms, share * kSms - kSms + 1}) {
      const std::size_t bytes = bytes_of_cta(ctas);
      EXPECT_EQ(kOfSm / (bytes + kSystem), static_cast<std::size_t>(share));
      EXPECT_GE(bytes, kNeeded);
      EXPECT_LE(bytes, kOfSm - kSystem);
    }
  }
  EXPECT_EQ(bytes_of_cta(kSms, 3), bytes_of_cta(3 * kSms));
}

TEST(EvenShare, CtasThatFillTheDeviceOrAreFewTakeWhatTheyNeed) {
  for (const std::int64_t ctas : {std::int64_t{0}, kSms, 3 * kSms - 1, (kPlaces - 1) * kSms + 1,
                                  kPlaces * kSms, 5 * kPlaces * kSms})
    EXPECT_EQ(bytes_of_cta(ctas), kNeeded) << ctas;
}

}  // namespace
}  // namespace spmmbench::test
