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

TEST(EsmmMmaLimits, CountsBothCopiesOfA) {
  if (Registry<Kernel>::instance().find("esmm_mma") == nullptr)
    GTEST_SKIP() << "built without CUDA";
  constexpr std::int64_t kSize = 16384;
  const Support support = asked(kSize, kSize, kSize);
  EXPECT_TRUE(support.ok);
  EXPECT_GT(support.device_bytes, 2 * kSize * kSize * 2);
}

TEST(EsmmMmaLimits, RefusesAnAThatDoesNotFitWithItsZeros) {
  if (Registry<Kernel>::instance().find("esmm_mma") == nullptr)
    GTEST_SKIP() << "built without CUDA";
  EXPECT_EQ(asked(300'000, 300'000, 256).reason, "A stored densely needs 360.4 GB");
}

}  // namespace
}  // namespace spmmbench
