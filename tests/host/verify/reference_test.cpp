#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fake_device.hpp"
#include "verify/exact.hpp"
#include "verify/reference.hpp"

namespace spmmbench {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

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
  float& b(int i, int j) { return static_cast<float*>(b_.data)[i * b_.ld + j]; }
  Verdict check(std::span<const std::int32_t> row_ids = {}) {
    return make_reference(a_, row_ids, b_, device_)->check(c_, {.unit = 0x1p-24});
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

TEST_F(Verify, ElementsOfAAndBAreTheirValuesTimesTheScales) {
  a_.scale = 0.5F;
  b_.scale = 8;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) c(i, j) *= 4;
  EXPECT_TRUE(check().ok);
  b_.scale = 7;
  EXPECT_FALSE(check().ok);
}

TEST_F(Verify, ElementsAreTheirValuesTimesTheScalesOfTheirBlocks) {
  a_.block_scales = {0.5F};
  std::vector<float> scales = {8, 2, 1, 4, 0.5F};  // one for each column
  b_.block_scales = scales.data();
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) c(i, j) *= 0.5F * scales[j];
  EXPECT_TRUE(check().ok);
  scales[3] = 3.99F;
  EXPECT_FALSE(check().ok);
  EXPECT_EQ(check().worst_col, 3);
}

TEST_F(Verify, OfEqualErrorsTheFirstIsReported) {
  for (const auto& [row, col] : {std::pair(0, 1), {0, 4}, {2, 3}})
    c(row, col) = std::numeric_limits<float>::infinity();
  EXPECT_EQ(check().worst_row, 0);
  EXPECT_EQ(check().worst_col, 1);
  const std::vector<std::int32_t> ids = {2, 1, 0};
  EXPECT_EQ(check(ids).worst_row, 0) << "in the order of C";
}

TEST_F(Verify, AResultThatIsTooLargeToKeepIsComputedAgain) {
  constexpr std::int64_t kWide = std::int64_t{1} << 20;  // 17 rows of it are too many
  a_ = {17, 1, {0}, std::vector<std::int32_t>(17, 0), std::vector<float>(17, 1)};
  for (std::int64_t row = 1; row <= 17; ++row) a_.row_ptr.push_back(row);
  b_ = make_dense_view(1, kWide, Layout::row_major, ElementType::f32);
  c_ = make_dense_view(17, kWide, Layout::row_major, ElementType::f32);
  b_memory_ = device_.allocate(b_.bytes());
  c_memory_ = device_.allocate(c_.bytes());
  b_.data = b_memory_.data();
  c_.data = c_memory_.data();
  std::fill_n(static_cast<float*>(b_.data), kWide, 1.0F);
  std::fill_n(static_cast<float*>(c_.data), 17 * kWide, 1.0F);
  const auto checker = make_reference(a_, {}, b_, device_);
  for (int pass = 0; pass < 2; ++pass) EXPECT_TRUE(checker->check(c_, {.unit = 0x1p-24}).ok);
  c(3, 5000) = 2;
  const Verdict verdict = checker->check(c_, {.unit = 0x1p-24});
  EXPECT_EQ(verdict.worst_row, 3);
  EXPECT_EQ(verdict.worst_col, 5000);
  EXPECT_NEAR(verdict.relative_frobenius, 1 / std::sqrt(17.0 * kWide), 1e-9);
}

TEST_F(Verify, TheBoundOfProductsThatCancelIsThatOfTheirMagnitudes) {
  for (int j = 0; j < 5; ++j) {
    b(1, j) = 1;
    b(2, j) = -2;
    c(0, j) = 0x1p-25F;  // of 2 x 2^-24 x (0.5 + 0.5)
  }
  EXPECT_DOUBLE_EQ(check().error_over_bound, 0.25);
  c(0, 3) = 0x1p-23F;
  EXPECT_TRUE(check().ok) << "just as large as the bound";
  c(0, 3) = 0x1.4p-23F;
  EXPECT_FALSE(check().ok);
}

TEST_F(Verify, ErrorsOfTheWholeResultAreAddedUp) {
  double squares = 0;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) squares += static_cast<double>(c(i, j)) * c(i, j);
  c(0, 0) += 3;
  c(2, 1) -= 4;
  const Verdict verdict = check();
  EXPECT_NEAR(verdict.relative_frobenius, 5 / std::sqrt(squares), 1e-6);
  EXPECT_GT(verdict.error_over_typical, 1e6) << "the largest, wherever it lies";
}

TEST_F(Verify, WhatIsComputedAgainIsTheSame) {
  const auto checker = make_reference(a_, {}, b_, device_);
  const ErrorBound bound{.unit = 0x1p-24};
  EXPECT_TRUE(checker->check(c_, bound).ok);
  checker->release_memory();
  EXPECT_TRUE(checker->check(c_, bound).ok);
  EXPECT_TRUE(checker->check(c_, bound).ok) << "from the memory that it keeps";
}

TEST_F(Verify, AnExactProductIsRoundedToTheTypeAndReadInTheLayoutOfC) {
  a_.values = {1, 0x1p-12F, 1};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) b(i, j) = static_cast<float>(1 + j);
  DenseView half = make_dense_view(3, 5, Layout::col_major, ElementType::f16);
  const Buffer memory = device_.allocate(half.bytes());
  half.data = memory.data();
  for (int j = 0; j < 5; ++j) {
    const std::int64_t at = j * half.ld;
    store_element(half.type, half.data, at, static_cast<float>(1 + j));  // 2^-12 of it is lost
    store_element(half.type, half.data, at + 1, 0);
    store_element(half.type, half.data, at + 2, static_cast<float>(1 + j));
  }
  EXPECT_TRUE(make_reference(a_, {}, b_, device_)->check_equal(half).ok);
}

TEST_F(Verify, NanAndInfinityNeverPass) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    c(0, 4) = bad;
    const Verdict verdict = check();
    EXPECT_FALSE(verdict.ok);
    EXPECT_TRUE(std::isinf(verdict.error_over_bound));
    EXPECT_EQ(verdict.worst_col, 4);
    EXPECT_TRUE(std::isnan(verdict.relative_frobenius));
  }
  c(0, 4) = 0;
  c(1, 0) = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(check().relative_frobenius)) << "of a row without nonzeros";
}

TEST_F(Verify, TheKernelThatKeepsANanIsRightAndTheOneThatDropsItIsWrong) {
  a_.values[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isinf(check().error_over_bound));
  for (int j = 0; j < 5; ++j) c(2, j) = std::numeric_limits<float>::quiet_NaN();
  const Verdict verdict = check();
  EXPECT_TRUE(verdict.ok);
  EXPECT_LE(verdict.relative_frobenius, 1e-6) << "over what is finite";
  c(0, 1) += 1;
  EXPECT_FALSE(check().ok);
}

TEST_F(Verify, TheKernelThatDropsAnInfinityIsWrong) {
  a_.values[2] = std::numeric_limits<float>::infinity();
  const Verdict verdict = check();
  EXPECT_TRUE(std::isinf(verdict.error_over_bound));
  EXPECT_EQ(verdict.incomparable, 0);
}

TEST_F(Verify, CountsWhatCannotBeCompared) {
  a_.values = {3e38F, -3e38F, 1};
  for (int j = 0; j < 5; ++j) {
    b(1, j) = 1.5F;
    b(2, j) = 1.5F;
    c(0, j) = std::numeric_limits<float>::quiet_NaN();  // infinity - infinity
    c(2, j) = b(0, j);
  }
  const Verdict verdict = check();
  EXPECT_TRUE(verdict.ok);
  EXPECT_EQ(verdict.incomparable, 5);
}

TEST_F(Verify, AnExactProductIsEqualOrWrong) {
  const Lattice lattice = *make_lattice(1, 2, Precision::fp32);
  a_ = with_lattice_values(a_, {}, lattice);
  device_.fill_lattice(b_, lattice);
  for (int j = 0; j < 5; ++j) {
    c(0, j) = a_.values[0] * b(1, j) + a_.values[1] * b(2, j);
    c(2, j) = a_.values[2] * b(0, j);
  }
  const auto checker = make_reference(a_, {}, b_, device_);
  EXPECT_TRUE(checker->check_equal(c_).ok);
  c(2, 4) = std::nextafter(c(2, 4), 1.0F);
  const Verdict verdict = checker->check_equal(c_);
  EXPECT_FALSE(verdict.ok);
  EXPECT_EQ(verdict.worst_row, 2);
  EXPECT_EQ(verdict.worst_col, 4);
}

// 2^60 + 1 - 2^60: in fp64 alone the reference were 0.
TEST(VerifyFp64, TheReferenceKeepsWhatFp64Drops) {
  FakeDevice device;
  const CsrMatrix a{1, 3, {0, 3}, {0, 1, 2}, {1, 1, 1}, {0x1p60, 1, -0x1p60}};
  std::vector<double> b = {1, 1 + 0x1p-52, 1}, c = {1};
  const DenseView b_view{b.data(), 3, 1, 1, Layout::row_major, ElementType::f64};
  const DenseView c_view{c.data(), 1, 1, 1, Layout::row_major, ElementType::f64};
  const auto reference = make_reference(a, {}, b_view, device);
  Verdict verdict = reference->check(c_view, {.unit = 0x1p-53});
  EXPECT_TRUE(verdict.ok);
  EXPECT_NEAR(verdict.error_frobenius, 0x1p-52, 0x1p-60);
  c[0] = 1 + 0x1p-52;
  EXPECT_TRUE(reference->check_equal(c_view).ok);
  EXPECT_EQ(reference->check(c_view, {.unit = 0x1p-53}).error_over_bound, 0);
  c[0] = 1;
  EXPECT_FALSE(reference->check_equal(c_view).ok);
}

TEST(VerifyFp64, OneUnitBeyondTheBoundIsWrong) {
  FakeDevice device;
  const CsrMatrix a{1, 1, {0, 1}, {0}, {1}, {1.25}};
  std::vector<double> b = {1.5}, c = {1.875};
  const DenseView b_view{b.data(), 1, 1, 1, Layout::row_major, ElementType::f64};
  const DenseView c_view{c.data(), 1, 1, 1, Layout::row_major, ElementType::f64};
  const auto reference = make_reference(a, {}, b_view, device);
  EXPECT_TRUE(reference->check(c_view, {.unit = 0x1p-53}).ok);
  c[0] = 1.875 + 0x1p-52;
  EXPECT_FALSE(reference->check(c_view, {.unit = 0x1p-53}).ok);
}

TEST(VerifyFp64, OverflowAndNanAreTheKernelsToo) {
  FakeDevice device;
  CsrMatrix a{1, 2, {0, 2}, {0, 1}, {1, 1}, {1e308, 1}};
  std::vector<double> b = {10, 1}, c = {kInfinity};
  const DenseView b_view{b.data(), 2, 1, 1, Layout::row_major, ElementType::f64};
  const DenseView c_view{c.data(), 1, 1, 1, Layout::row_major, ElementType::f64};
  EXPECT_TRUE(make_reference(a, {}, b_view, device)->check(c_view, {}).ok);
  a.values64 = {kNan, 1};
  c[0] = kNan;
  EXPECT_TRUE(make_reference(a, {}, b_view, device)->check(c_view, {}).ok);
  c[0] = 1;
  EXPECT_FALSE(make_reference(a, {}, b_view, device)->check(c_view, {}).ok);
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
  c(0, 1) += 1;
  EXPECT_EQ(check(ids).worst_row, 0) << "of C";
}

}  // namespace
}  // namespace spmmbench
