#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fake_device.hpp"
#include "verify/bound.hpp"
#include "verify/reference.hpp"

namespace spmmbench {
namespace {

class Verify : public ::testing::Test {
 protected:
  void SetUp() override {
    b_ = make_dense_view(3, 5, Layout::row_major, ElementType::f32);
    c_ = make_dense_view(3, 5, Layout::row_major, ElementType::f32);
    b_memory_ = device_.allocate(b_.bytes());
    c_memory_ = device_.allocate(c_.bytes());
    b_.data = b_memory_.data();
    c_.data = c_memory_.data();
    device_.fill_uniform(b_, 7, Precision::fp32);
    for (int j = 0; j < 5; ++j) {
      c(0, j) = 0.5F * b(1, j) + 0.25F * b(2, j);
      c(1, j) = 0;
      c(2, j) = -1.0F * b(0, j);
    }
  }
  float& c(int i, int j) { return static_cast<float*>(c_.data)[i * c_.ld + j]; }
  float b(int i, int j) const { return static_cast<float*>(b_.data)[i * b_.ld + j]; }
  Verdict check(std::span<const std::int32_t> row_ids = {}) {
    return make_reference(a_, row_ids, b_, device_)->check(c_, {0x1p-24, 0, 0});
  }

  FakeDevice device_;
  CsrMatrix a_{3, 3, {0, 2, 2, 3}, {1, 2, 0}, {0.5F, 0.25F, -1.0F}};
  DenseView b_, c_;
  Buffer b_memory_, c_memory_;
};

TEST_F(Verify, AcceptsTheRightResult) {
  const Verdict verdict = check();
  EXPECT_TRUE(verdict.ok);
  EXPECT_LE(verdict.error_over_bound, 1);
}

TEST_F(Verify, NamesTheWorstElement) {
  c(2, 3) *= 1 + 0x1p-20F;
  const Verdict verdict = check();
  EXPECT_FALSE(verdict.ok);
  EXPECT_NEAR(verdict.error_over_bound, 16, 0.5);
  EXPECT_EQ(verdict.worst_row, 2);
  EXPECT_EQ(verdict.worst_col, 3);
}

TEST_F(Verify, NanAndInfinityNeverPass) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    c(0, 4) = bad;
    const Verdict verdict = check();
    EXPECT_FALSE(verdict.ok);
    EXPECT_TRUE(std::isinf(verdict.error_over_bound));
    EXPECT_EQ(verdict.worst_col, 4);
  }
}

TEST_F(Verify, AnEmptyRowMustBeExactlyZero) {
  c(1, 0) = 0x1p-100F;
  EXPECT_FALSE(check().ok);
}

TEST_F(Verify, ReadsRowsThroughTheirIds) {
  for (int j = 0; j < 5; ++j) std::swap(c(0, j), c(2, j));
  EXPECT_FALSE(check().ok);
  const std::vector<std::int32_t> ids = {2, 1, 0};
  EXPECT_TRUE(check(ids).ok);
}

TEST(Bound, TensorCoresGetFourUnitsPerNonzeroExceptAtFp32) {
  KernelInfo info;
  info.accumulation = Accumulation::fp32_tensor_core;
  EXPECT_EQ(error_bound(info, Precision::fp16, ElementType::f32).unit, 0x1p-22);
  EXPECT_EQ(error_bound(info, Precision::fp32, ElementType::f32).unit, 0x1p-24);
}

TEST(Bound, GrowsWithTheRowAndNeverPassesTheAbsoluteSum) {
  const ErrorBound bound{0x1p-24, 0, 0};
  EXPECT_DOUBLE_EQ(bound_at(bound, 3, 1, 10), 30 * 0x1p-24);
  EXPECT_DOUBLE_EQ(bound_at(bound, 3, 1, 1e9), 3);
}

TEST(Bound, SixteenBitOutputAddsItsRounding) {
  const ErrorBound bound = error_bound({}, Precision::fp16, ElementType::f16);
  EXPECT_GE(bound_at(bound, 1, 1, 1), 0x1p-11);
  EXPECT_EQ(bound_at(bound, 0, 0, 0), 0);
}

}  // namespace
}  // namespace spmmbench
