// What esmm_mma refuses, by arithmetic alone: the matrices have no entries.

#include <gtest/gtest.h>

#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

Support asked(std::int64_t rows, std::int64_t cols, std::int64_t n) {
  CsrMatrix a;
  a.rows = rows;
  a.cols = cols;
  a.row_ptr = {0, 0};
  Problem problem;
  problem.a = &a;
  problem.n = n;
  problem.precision = Precision::fp16;
  DeviceInfo device;
  device.kind = DeviceKind::cuda;
  device.compute_capability = 90;
  device.memory_bytes = std::size_t{140} << 30;
  return check_support(Registry<Kernel>::instance().at("esmm_mma"), problem, device);
}

TEST(EsmmMmaLimits, RefusesAnInnerDimensionThatAnEntryOfAListCannotHold) {
  if (Registry<Kernel>::instance().find("esmm_mma") == nullptr)
    GTEST_SKIP() << "built without CUDA";
  EXPECT_TRUE(asked(128, 1 << 20, 256).ok);
  EXPECT_EQ(asked(128, (1 << 20) + 1, 256).reason, "more than 2^20 columns of A");
}

TEST(EsmmMmaLimits, CountsTheListsOfAllTiles) {
  if (Registry<Kernel>::instance().find("esmm_mma") == nullptr)
    GTEST_SKIP() << "built without CUDA";
  constexpr std::int64_t kSize = 16384, kTiles = kSize / 128 * kSize / 256;
  const Support support = asked(kSize, kSize, kSize);
  EXPECT_TRUE(support.ok);
  EXPECT_GT(support.device_bytes, 2 * kSize * kSize * 2 + kTiles * kSize * 4);
  EXPECT_NE(asked(100'000, 100'000, 100'000).reason, "");
}

}  // namespace
}  // namespace spmmbench
