#include "verify/tensor_core.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace spmmbench {
namespace {

constexpr TensorCore kHalf = tensor_core(Precision::fp16);

struct Factors {
  float a, b;
};

float sum_of(const TensorCore& core, const std::vector<Factors>& products, float accumulator = 0) {
  std::vector<float> a, b;
  for (const Factors& product : products) a.push_back(product.a), b.push_back(product.b);
  return multiply_accumulate(core, a, b, accumulator);
}

TEST(TensorCore, MultipliesExactlyAndTruncatesTheSumToFp32) {
  EXPECT_EQ(sum_of(kHalf, {{0x1.004p0F, 0x1.004p0F}}), 0x1.004p0F * 0x1.004p0F);
  EXPECT_EQ(sum_of(kHalf, {{0x1.8p-12F, 0x1p-12F}}, 1), 1) << "three quarters of the last bit";
  EXPECT_EQ(sum_of(kHalf, {{0x1.8p-12F, -0x1p-12F}}, -1), -1);
  EXPECT_EQ(sum_of(kHalf, {{0x1p-12F, -0x1p-12F}}, 1), 1 - 0x1p-24F);
}

TEST(TensorCore, KeepsTwoBitsBehindTheLastOfFp32WhileItAddsUp) {
  constexpr Factors kKept{0x1p-12F, 0x1p-13F}, kLost{0x1p-13F, 0x1p-13F};
  EXPECT_EQ(sum_of(kHalf, {4, kKept}, 1), 1 + 0x1p-23F);
  EXPECT_EQ(sum_of(kHalf, {16, kLost}, 1), 1);
  EXPECT_EQ(sum_of(kHalf, {kLost, kLost}), 0x1p-25F) << "there is nothing larger";
}

TEST(TensorCore, AlignsToTheSumOfTheExponentsOfTheFactors) {
  EXPECT_EQ(sum_of(kHalf, {{1.5F, 1.5F}, {1.5F, -1.5F}, {0x1p-12F, 0x1p-13F}}), 0x1p-25F);
  EXPECT_EQ(sum_of(kHalf, {{2, 1}, {2, -1}, {0x1p-12F, 0x1p-13F}}), 0);
}

TEST(TensorCore, AddsUpAllProductsOfAnInstructionAtOnce) {
  std::mt19937 random(1);
  std::vector<Factors> products(16);
  for (Factors& product : products)
    product = {std::ldexp(1.0F, -static_cast<int>(random() % 14)),
               std::ldexp(random() % 2 == 0 ? 1.0F : -1.0F, -static_cast<int>(random() % 14))};
  const float sum = sum_of(kHalf, products, 0x1.234568p-3F);
  for (int i = 0; i < 20; ++i) {
    std::ranges::shuffle(products, random);
    EXPECT_EQ(sum_of(kHalf, products, 0x1.234568p-3F), sum);
  }
}

TEST(TensorCore, LeavesZerosOutOfTheAlignmentAndGivesPositiveZero) {
  EXPECT_EQ(sum_of(kHalf, {{0, 65'504}, {0x1p-24F, 0x1p-14F}}, 0x1p-38F), 0x1p-37F);
  EXPECT_FALSE(std::signbit(sum_of(kHalf, {{-0.0F, 1}}, -0.0F)));
  EXPECT_FALSE(std::signbit(sum_of(kHalf, {{-1, 1}}, 1)));
}

TEST(TensorCore, TakesSubnormalInputsForAsLargeAsTheLeastNormalOne) {
  EXPECT_EQ(sum_of(kHalf, {{0x1p-24F, 1}}, 0x1p-40F), 0x1p-24F);
  EXPECT_EQ(sum_of(kHalf, {{0x1p-14F, 0x1p-10F}}, 0x1p-40F), 0x1.0001p-24F);
}

TEST(TensorCore, HasSubnormalSumsOfProductsThatFp32CannotHold) {
  constexpr TensorCore kBfloat = tensor_core(Precision::bf16);
  EXPECT_EQ(sum_of(kBfloat, {{0x1p-70F, 0x1p-70F}}, 0x1p-149F), 0x1.008p-140F);
  EXPECT_EQ(sum_of(kBfloat, {16, {0x1p-76F, 0x1p-77F}}), 0x1p-149F);
  EXPECT_EQ(sum_of(kBfloat, {{0x1p-75F, 0x1p-74F}, {-0x1p-80F, 0x1p-79F}}), 0x1p-149F)
      << "2^-159 is below 2^-133 by more than 25 bits";
  EXPECT_FALSE(std::signbit(sum_of(kBfloat, {{-0x1p-80F, 0x1p-75F}})));
  EXPECT_EQ(sum_of(kBfloat, {4, {0x1p-76F, 0x1p-76F}}, 0x1p-149F), 0x1p-149F);
}

TEST(TensorCore, OverflowsToInfinityAndHasOneNan) {
  constexpr TensorCore kTf32 = tensor_core(Precision::tf32);
  const auto is_nan = [](float x) { return std::bit_cast<std::uint32_t>(x) == 0x7FFFFFFFU; };
  EXPECT_EQ(sum_of(kTf32, {{-0x1p64F, 0x1p63F}, {-0x1p64F, 0x1p63F}}), -HUGE_VALF);
  EXPECT_EQ(sum_of(kTf32, {{0x1p64F, 0x1p63F}, {0x1p102F, 1}}, 0x1.fffffcp126F), 0x1.fffffep127F);
  EXPECT_EQ(sum_of(kTf32, {{0x1p100F, 0x1p100F}, {-0x1p100F, 0x1p100F}}), 0);
  EXPECT_EQ(sum_of(kHalf, {{HUGE_VALF, -1}}, 1), -HUGE_VALF);
  EXPECT_TRUE(is_nan(sum_of(kHalf, {{HUGE_VALF, 0}})));
  EXPECT_TRUE(is_nan(sum_of(kHalf, {{HUGE_VALF, 1}}, -HUGE_VALF)));
  EXPECT_TRUE(is_nan(sum_of(kHalf, {{-NAN, 1}})));
}

TEST(TensorCore, InFp8KeepsThirteenBitsBehindTheLeadingOne) {
  constexpr Factors kLast{0x1p-6F, 0x1p-7F}, kHalfOfIt{0x1p-6F, 0x1p-8F};
  for (const Precision precision : {Precision::fp8_e4m3, Precision::fp8_e5m2}) {
    const TensorCore core = tensor_core(precision);
    EXPECT_EQ(sum_of(core, {{1, 1}, kLast}), 1 + 0x1p-13F);
    EXPECT_EQ(sum_of(core, {31, kHalfOfIt}, 1), 1);
    EXPECT_EQ(sum_of(core, {{1, 1}, kLast}, 1), 2) << "the sum too";
    EXPECT_EQ(sum_of(core, {}, 0x1.00018p0F), 1) << "and the accumulator";
  }
}

}  // namespace
}  // namespace spmmbench
