// What cusparselt refuses, and where it finds its library. Stand-ins of the library are in
// tests/fakes.

#include <gtest/gtest.h>

#include <cstdlib>

#include "../host/matrices.hpp"
#include "spmmbench/registry.hpp"

#ifdef SPMMBENCH_FAKE_CUSPARSELT

namespace spmmbench {
namespace {

CsrMatrix two_of_four(std::int64_t rows, std::int64_t cols) {
  std::vector<std::int32_t> row;
  for (std::int32_t c = 0; c < cols; ++c)
    if (c % 4 < 2) row.push_back(c);
  return testing::from_rows(cols, std::vector<std::vector<std::int32_t>>(rows, row));
}

Support ask(const CsrMatrix& a, std::int64_t n, ElementType c_type = ElementType::f16,
            Layout layout = Layout::row_major, Precision precision = Precision::fp16) {
  Problem problem;
  problem.a = &a;
  problem.n = n;
  problem.precision = precision;
  problem.c_type = c_type;
  problem.layout = layout;
  DeviceInfo device;
  device.kind = DeviceKind::cuda;
  device.compute_capability = 90;
  device.memory_bytes = std::size_t{1} << 30;
  return check_support(Registry<Kernel>::instance().at("cusparselt"), problem, device);
}

void use_library(const char* path) { setenv("SPMMBENCH_CUSPARSELT", path, 1); }

TEST(CusparseLt, RefusesWhatTheLibraryDoesNotTake) {
  EXPECT_EQ(ask(two_of_four(16, 24), 8).reason, "needs M and K divisible by 16");
  EXPECT_EQ(ask(two_of_four(24, 16), 8).reason, "needs M and K divisible by 16");
  EXPECT_EQ(ask(two_of_four(16, 16), 12).reason, "needs N divisible by 8");
  EXPECT_EQ(ask(two_of_four(16, 16), 8, ElementType::f32).reason, "does not write fp32");
  EXPECT_EQ(ask(two_of_four(16, 16), 8, ElementType::bf16).reason,
            "cuSPARSELt does not write bf16 from fp16 inputs");
  EXPECT_EQ(ask(two_of_four(16, 16), 8, ElementType::f16, Layout::col_major).reason,
            "cuSPARSELt 0.8.0 loses the device in column-major 16 bits");
}

TEST(CusparseLt, RefusesWhatTheLibraryDoesNotTakeInFp8) {
  const auto reason = [](std::int64_t k, std::int64_t n, Layout layout) {
    return ask(two_of_four(32, k), n, ElementType::f16, layout, Precision::fp8_e4m3).reason;
  };
  EXPECT_EQ(reason(48, 16, Layout::col_major), "needs M and K divisible by 32");
  EXPECT_EQ(reason(32, 8, Layout::col_major), "needs N divisible by 16");
  EXPECT_EQ(reason(32, 16, Layout::row_major),
            "cuSPARSELt takes fp8 contiguous along K: needs column-major B and C");
}

TEST(CusparseLt, RefusesAMatrixThatIsNotInTwoOfFour) {
  CsrMatrix a = two_of_four(16, 16);
  a.col_idx[a.row_ptr[3] + 2] = 2;  // beside columns 0 and 1
  EXPECT_EQ(ask(a, 8).reason, "not in 2:4: row 3 has more than two nonzeros in a group of four");
}

// In one test, since a library that was found once is kept.
TEST(CusparseLt, IsSkippedUntilItsLibraryIsFound) {
  const CsrMatrix a = two_of_four(16, 32);
  use_library("/no/such/libcusparseLt.so.0");
  const std::string reason = ask(a, 8).reason;
  EXPECT_TRUE(reason.starts_with("cuSPARSELt not found")) << reason;
  if (reason.ends_with("header")) GTEST_SKIP() << reason;
  use_library(SPMMBENCH_FAKE_CUSPARSELT_TOO_OLD);
  EXPECT_EQ(ask(a, 8).reason,
            "cuSPARSELt 0.8 or newer not found: libcusparseLt.so.0 lacks "
            "cusparseLtMatmulAlgSelectionDestroy");
  use_library(SPMMBENCH_FAKE_CUSPARSELT);
  EXPECT_TRUE(ask(a, 8).ok);
  EXPECT_GE(ask(a, 8).device_bytes, 16U * 32U * 2U);
}

}  // namespace
}  // namespace spmmbench

#endif
