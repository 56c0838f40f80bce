// What cublas_dense refuses, by arithmetic alone: the matrices have no entries.

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

bool too_large(std::int64_t rows, std::int64_t cols, std::int64_t n, Layout layout) {
  CsrMatrix a;
  a.rows = rows;
  a.cols = cols;
  a.row_ptr = {0, 0};
  Problem problem;
  problem.a = &a;
  problem.n = n;
  problem.precision = Precision::fp16;
  problem.layout = layout;
  DeviceInfo device;
  device.kind = DeviceKind::cuda;
  device.compute_capability = 90;
  const Kernel& kernel = Registry<Kernel>::instance().at("cublas_dense");
  // Without cuBLAS, or on a device without memory, others are refused for that.
  return check_support(kernel, problem, device).reason.find("up to 2^31 - 1") != std::string::npos;
}

TEST(CublasDenseLimits, RefusesSizesThatAreNoInt) {
  if (Registry<Kernel>::instance().find("cublas_dense") == nullptr)
    GTEST_SKIP() << "built without CUDA";
  for (const Layout layout : {Layout::row_major, Layout::col_major}) {
    EXPECT_FALSE(too_large(100, 100, 100, layout));
    EXPECT_TRUE(too_large(kMost + 1, 100, 100, layout));
    EXPECT_TRUE(too_large(100, kMost + 1, 100, layout));
    EXPECT_TRUE(too_large(100, 100, kMost + 1, layout));
  }
  EXPECT_FALSE(too_large(100, 100, kMost, Layout::col_major));
  EXPECT_TRUE(too_large(100, 100, kMost, Layout::row_major)) << "rows of B are padded";
}

}  // namespace
}  // namespace spmmbench
