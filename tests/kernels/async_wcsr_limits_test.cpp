// What async_wcsr refuses, by arithmetic alone: the matrices have no entries behind their row
// pointers.

#include <gtest/gtest.h>

#include <limits>

#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

Support ask(std::int64_t rows, std::int64_t nnz, std::int64_t n, Layout layout = Layout::row_major,
            const char* options = "async_wcsr", Precision precision = Precision::fp16) {
  const Kernel& kernel = Registry<Kernel>::instance().at("async_wcsr");
  CsrMatrix a;
  a.rows = rows;
  a.cols = (std::int64_t{1} << 24) + 1;
  a.row_ptr = {0, nnz};
  Problem problem;
  problem.a = &a;
  problem.n = n;
  problem.layout = layout;
  problem.options = Spec::parse(options).options;
  problem.precision = precision;
  DeviceInfo device;
  device.kind = DeviceKind::cuda;
  device.compute_capability = 90;
  return check_support(kernel, problem, device);
}

TEST(AsyncWcsrLimits, RefusesWhat31BitIndicesCannotHold) {
  if (Registry<Kernel>::instance().find("async_wcsr") == nullptr)
    GTEST_SKIP() << "built without CUDA";
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  EXPECT_TRUE(ask(1000, kMost - 1001, 128).ok);
  EXPECT_FALSE(ask(1000, kMost - 1000, 128).ok);
  EXPECT_FALSE(ask(kMost, 5, 128).ok);
}

TEST(AsyncWcsrLimits, PredictsBytesBeyond32Bits) {
  if (Registry<Kernel>::instance().find("async_wcsr") == nullptr)
    GTEST_SKIP() << "built without CUDA";
  EXPECT_GT(ask(1000, 2'000'000'000, 128).device_bytes, std::size_t{1} << 34);
}

TEST(AsyncWcsrLimits, RefusesMoreFeatureTilesThanAGridHolds) {
  if (Registry<Kernel>::instance().find("async_wcsr") == nullptr)
    GTEST_SKIP() << "built without CUDA";
  EXPECT_TRUE(ask(10, 10, 65535 * 64).ok);
  EXPECT_FALSE(ask(10, 10, 65535 * 64 + 1).ok);
}

TEST(AsyncWcsrLimits, TakesNoFeatureTileForAVector) {
  if (Registry<Kernel>::instance().find("async_wcsr") == nullptr)
    GTEST_SKIP() << "built without CUDA";
  EXPECT_TRUE(ask(10, 10, 1, Layout::col_major).ok);
  EXPECT_TRUE(ask(10, 10, 1, Layout::row_major).ok);
  EXPECT_FALSE(ask(10, 10, 1, Layout::col_major, "async_wcsr?feature_tile=32").ok);
  EXPECT_TRUE(ask(10, 10, 2, Layout::row_major, "async_wcsr?feature_tile=32").ok);
}

TEST(AsyncWcsrLimits, PredictsTheMemoryOfRowMajorCopiesOfAColumnMajorBAndC) {
  if (Registry<Kernel>::instance().find("async_wcsr") == nullptr)
    GTEST_SKIP() << "built without CUDA";
  const auto copied = [](std::int64_t n) {
    return ask(10, 10, n, Layout::col_major).device_bytes -
           ask(10, 10, n, Layout::row_major).device_bytes;
  };
  constexpr std::size_t kRowsOfB = (1 << 24) + 1;
  EXPECT_EQ(copied(1), 0U);
  EXPECT_EQ(copied(8), kRowsOfB * 16 + 10 * 32);
}

TEST(AsyncWcsrLimits, TakesNoVectorInFp32) {
  if (Registry<Kernel>::instance().find("async_wcsr") == nullptr)
    GTEST_SKIP() << "built without CUDA";
  EXPECT_FALSE(ask(10, 10, 1, Layout::row_major, "async_wcsr", Precision::fp32).ok);
  EXPECT_TRUE(ask(10, 10, 2, Layout::row_major, "async_wcsr", Precision::fp32).ok);
}

}  // namespace
}  // namespace spmmbench
