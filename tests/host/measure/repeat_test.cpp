#include "measure/repeat.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "gpu/backend.hpp"

namespace spmmbench {
namespace {

constexpr std::int64_t kColumnsOfC = 64, kRowsOfC = 40'000;  // 10.24 MB

// Whether each launch was known to leave the C that the first one had, without a comparison.
std::vector<bool> known_launches(HostMemory* left) {
  const auto device = open_host_device(left);
  std::vector<float> values(kRowsOfC * kColumnsOfC, 1);
  DenseView c;
  c.data = values.data();
  c.rows = kRowsOfC;
  c.cols = c.ld = kColumnsOfC;
  std::vector<bool> known;
  EXPECT_TRUE(launches_stay_right(
      *device, KernelInfo{}, c, [&] { std::fill(values.begin(), values.end(), 1.0F); },
      [&](bool is_known) {
        known.push_back(is_known);
        return true;
      }));
  return known;
}

TEST(LaunchesAfterTiming, OnTheHostAreComparedWithTheFirstIfMemorySufficesForACopy) {
  EXPECT_EQ(known_launches([] { return std::size_t{20} << 20; }), std::vector(3, true));
  EXPECT_EQ(known_launches([] { return std::size_t{8} << 20; }), std::vector(3, false));
}

}  // namespace
}  // namespace spmmbench
