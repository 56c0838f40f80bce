#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "spmmbench/random.hpp"
#include "verify/bound.hpp"
#include "verify/tensor_core.hpp"

namespace spmmbench {
namespace {

TEST(Bound, TensorCoresGetThreeUnitsPerNonzeroExceptAtFp32) {
  KernelInfo info;
  info.accumulation = Accumulation::fp32_tensor_core;
  EXPECT_EQ(error_bound(info, Precision::fp16, ElementType::f32).unit, 3 * 0x1p-24);
  EXPECT_EQ(error_bound(info, Precision::fp32, ElementType::f32).unit, 0x1p-24);
}

TEST(Bound, ProductsInFp64HaveTheRoundingOfFp64WhateverTheKernelSays) {
  for (const Accumulation sums :
       {Accumulation::fp32_fma, Accumulation::fp32_tensor_core, Accumulation::fp16}) {
    KernelInfo kernel;
    kernel.accumulation = sums;
    const ErrorBound bound = error_bound(kernel, Precision::fp64, ElementType::f64);
    EXPECT_EQ(bound.unit, 0x1p-53);
    EXPECT_EQ(bound.output_unit, 0);
    EXPECT_EQ(bound.underflow, 0x1p-1021);
    EXPECT_EQ(sum_type(kernel, Precision::fp64), ElementType::f64);
  }
}

// By instructions of tensor cores, with 32 products each.
double sum_of_tensor_cores(std::span<const float> a, std::span<const float> b) {
  float sum = 0;
  for (std::size_t k = 0; k < a.size(); k += 32)
    sum = multiply_accumulate(tensor_core(Precision::fp8_e4m3), a.subspan(k, 32), b.subspan(k, 32),
                              sum);
  return sum;
}

TEST(Bound, InFp8IsThatOfSumsOfFourteenBitsWithinTheColumnsThatAreNotPromoted) {
  constexpr std::int64_t kRow = 2048, kChunk = 128;
  KernelInfo alone, promoted;
  alone.accumulation = promoted.accumulation = Accumulation::fp32_tensor_core;
  promoted.promoted_columns = kChunk;
  constexpr Precision kFp8 = Precision::fp8_e4m3;
  EXPECT_EQ(sum_bits(alone, kFp8), 14);
  EXPECT_EQ(sum_bits(promoted, kFp8), 24);
  EXPECT_EQ(sum_bits({}, kFp8), 24);
  const ErrorBound of_all = error_bound(alone, kFp8, ElementType::f32);
  const ErrorBound of_chunks = error_bound(promoted, kFp8, ElementType::f32);
  const ErrorBound of_fmas = error_bound({}, kFp8, ElementType::f32);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<float> a, b;
    double exact = 0, in_chunks = 0;
    for (std::int64_t k = 0; k < kRow; ++k) {
      a.push_back(static_cast<float>(std::abs(uniform_in(kFp8, seed, k, 0))));  // one sign
      b.push_back(static_cast<float>(std::abs(uniform_in(kFp8, seed, k, 1))));
      exact += static_cast<double>(a.back()) * b.back();
    }
    for (std::int64_t first = 0; first < kRow; first += kChunk)
      in_chunks += sum_of_tensor_cores(std::span(a).subspan(first, kChunk),
                                       std::span(b).subspan(first, kChunk));
    const double sum = sum_of_tensor_cores(a, b);
    EXPECT_LE(judge(sum, exact, exact, kRow, of_all).over_bound, 1);
    EXPECT_LE(judge(in_chunks, exact, exact, kRow, of_chunks).over_bound, 1);
    EXPECT_GT(judge(sum, exact, exact, kRow, of_fmas).over_bound, 1);
    EXPECT_LT(std::abs(in_chunks - exact), std::abs(sum - exact)) << "what promotion is for";
  }
}

TEST(Bound, InFp8OfAKernelThatMultipliesItAsFp16IsThatOfFp16AndTwoRoundingsOfTheScales) {
  KernelInfo info;
  info.accumulation = Accumulation::fp32_tensor_core;
  info.promoted_columns = 1;
  const ErrorBound bound = error_bound(info, Precision::fp8_e4m3, ElementType::f32);
  EXPECT_EQ(sum_bits(info, Precision::fp8_e4m3), 24);
  EXPECT_EQ(bound.unit, error_bound(info, Precision::fp16, ElementType::f32).unit + 2 * 0x1p-24);
  EXPECT_EQ(bound.chunk_unit, 0);
}

TEST(Judge, SeesTheErrorOfAnElementInFp64InTheSecondTermOfItsReference) {
  const ErrorBound bound = {.unit = 0x1p-53};
  EXPECT_EQ(judge(1, 1, 1, 1, bound, 0x1p-54).error, -0x1p-54);
  EXPECT_NEAR(judge(1, 1, 1, 1, bound, 0x1p-54).over_bound, 0.5, 1e-9);
  EXPECT_GT(judge(1 + 0x1p-52, 1, 1, 1, bound, -0x1p-54).over_bound, 2);
}

TEST(Bound, SumsInFp16HaveTheRoundingAndTheRangeOfFp16) {
  KernelInfo info;
  info.accumulation = Accumulation::fp16;
  const ErrorBound bound = error_bound(info, Precision::fp16, ElementType::f32);
  EXPECT_EQ(bound.unit, 4 * 0x1p-11);
  EXPECT_TRUE(judge(HUGE_VAL, 70'000, 70'000, 2, bound).comparable);
  EXPECT_EQ(judge(HUGE_VAL, 70'000, 70'000, 2, bound).over_bound, 0);
  EXPECT_FALSE(judge(HUGE_VAL, 1, 200'000, 3, bound).comparable) << "the order of the sums decides";
  EXPECT_FALSE(judge(NAN, 1, 200'000, 3, bound).comparable);
  EXPECT_TRUE(judge(HUGE_VAL, 1, 20'000, 3, bound).comparable);
}

TEST(Bound, GrowsWithTheRowAndNeverPassesTheAbsoluteSum) {
  const ErrorBound bound{.unit = 0x1p-24};
  EXPECT_DOUBLE_EQ(bound_at(bound, 3, 1, 10), 30 * 0x1p-24);
  EXPECT_DOUBLE_EQ(bound_at(bound, 3, 1, 1e9), 3);
}

TEST(Bound, SixteenBitOutputAddsItsRounding) {
  const ErrorBound bound = error_bound({}, Precision::fp16, ElementType::f16);
  EXPECT_GE(bound_at(bound, 1, 1, 1), 0x1p-11);
  EXPECT_EQ(bound_at({.unit = 0.25, .output_unit = 0.5}, 1, 1, 1), 0.25 + 0.5 * (1 + 0.25))
      << "what is stored may be larger than the reference";
  EXPECT_EQ(judge(0x1p-24, 0, 0, 0, bound).over_bound, HUGE_VAL) << "a row without nonzeros";
}

TEST(Bound, SubnormalOutputErrsByHalfOfTheSmallestSubnormal) {
  const ErrorBound bound = error_bound({}, Precision::fp16, ElementType::f16);
  EXPECT_LE(judge(0x1p-24, 0x1.01p-25, 0x1.01p-25, 1, bound).over_bound, 1);
  EXPECT_GT(judge(0x1p-23, 0x1.01p-24, 0x1.01p-24, 1, bound).over_bound, 1);
}

TEST(Bound, ANegativeResultHasTheBoundOfItsMagnitude) {
  const ErrorBound bound = error_bound({}, Precision::fp16, ElementType::f16);
  EXPECT_EQ(bound_at(bound, 1, -1, 1), bound_at(bound, 1, 1, 1));
}

TEST(Bound, TheTypicalErrorGrowsWithTheRootOfTheRow) {
  const ErrorBound bound{.unit = 0x1p-24};
  EXPECT_DOUBLE_EQ(typical_at(bound, 3, 1, 10'000), 3 * 800 * 0x1p-24);
  EXPECT_DOUBLE_EQ(typical_at(bound, 3, 1, 10), bound_at(bound, 3, 1, 10)) << "never above it";
  const ElementVerdict dropped = judge(1, 2, 5000, 10'000, bound);
  EXPECT_LT(dropped.over_bound, 1) << "one nonzero of 10,000 hides in the bound of tensor cores";
  EXPECT_GT(dropped.over_typical, 1);
}

TEST(Judge, ComparesNanWithNanAndInfinityWithInfinity) {
  const ErrorBound bound{.unit = 0x1p-24};
  EXPECT_EQ(judge(NAN, NAN, 1, 2, bound).over_bound, 0);
  EXPECT_EQ(judge(-HUGE_VAL, -HUGE_VAL, 1, 2, bound).over_bound, 0);
  EXPECT_EQ(judge(0.5, NAN, 1, 2, bound).over_bound, HUGE_VAL) << "the NaN was dropped";
  EXPECT_EQ(judge(NAN, 0.5, 1, 2, bound).over_bound, HUGE_VAL);
  EXPECT_EQ(judge(HUGE_VAL, -HUGE_VAL, 1, 2, bound).over_bound, HUGE_VAL);
  EXPECT_EQ(judge(NAN, HUGE_VAL, 1, 2, bound).over_bound, HUGE_VAL);
  EXPECT_EQ(judge(3e38, HUGE_VAL, 1, 2, bound).over_bound, HUGE_VAL);
}

TEST(Judge, AllowsWhatUnderflowsToErrByASubnormal) {
  const ErrorBound bound = error_bound({}, Precision::fp32, ElementType::f32);
  const double tiny = 1e-42;
  const auto c = static_cast<double>(static_cast<float>(tiny) * 0.3F);
  EXPECT_LE(
      judge(c, static_cast<double>(static_cast<float>(tiny)) * 0.3F, tiny, 1, bound).over_bound, 1);
  EXPECT_LE(judge(0, tiny, tiny, 1, bound).over_bound, 1) << "flushed to zero";
  EXPECT_GT(judge(0, 1e-36, 1e-36, 1, bound).over_bound, 1);
}

TEST(Judge, ExpectsInfinityWhereTheTypeOfCOverflows) {
  const ErrorBound half = error_bound({}, Precision::fp16, ElementType::f16);
  EXPECT_EQ(judge(HUGE_VAL, 70'000, 70'000, 2, half).over_bound, 0);
  EXPECT_EQ(judge(HUGE_VAL, 65'519.995, 65'519.995, 2, half).over_bound, 0) << "within its bound";
  EXPECT_GT(judge(65'504, 70'000, 70'000, 2, half).over_bound, 1);
  EXPECT_EQ(judge(-HUGE_VAL, 70'000, 70'000, 2, half).over_bound, HUGE_VAL);
  EXPECT_EQ(judge(HUGE_VAL, 60'000, 60'000, 2, half).over_bound, HUGE_VAL);
  const ErrorBound single = error_bound({}, Precision::fp32, ElementType::f32);
  EXPECT_EQ(judge(HUGE_VAL, 4e38, 4e38, 2, single).over_bound, 0);
  EXPECT_LE(judge(3e38, 3e38 * (1 + 0x1p-24), 3e38, 2, single).over_bound, 1);
}

TEST(Judge, SaysNothingWhereTheOrderOfTheSumsDecidesWhetherTheyOverflow) {
  const ErrorBound bound = error_bound({}, Precision::fp32, ElementType::f32);
  EXPECT_FALSE(judge(NAN, 1, 9e38, 3, bound).comparable);
  EXPECT_FALSE(judge(HUGE_VAL, 1, 9e38, 3, bound).comparable);
  EXPECT_FALSE(judge(NAN, 1, 4e38, 3, bound).comparable);
  EXPECT_TRUE(judge(1, 1, 9e38, 3, bound).comparable);
  EXPECT_TRUE(judge(NAN, 1, 9e37, 3, bound).comparable);
  EXPECT_FALSE(judge(NAN, HUGE_VAL, 9e38, 3, bound).comparable);
}

TEST(MeanError, HoldsForRoundedSumsAndFindsAShareThatIsLeftOut) {
  constexpr std::int64_t kRow = 20'000, kColumns = 16;
  CsrMatrix a{1, kRow, {0, kRow}, {}, {}};
  for (std::int64_t k = 0; k < kRow; ++k) {
    a.col_idx.push_back(static_cast<std::int32_t>(k));
    a.values.push_back(uniform_at(1, 0, k));
  }
  const double allowed =
      mean_error(a, kColumns, error_bound({}, Precision::fp32, ElementType::f32));
  // The error of sums in fp32, of which those of the last `left_out` products are not made.
  const auto error = [&](std::int64_t left_out) {
    double squares = 0;
    for (std::int64_t j = 0; j < kColumns; ++j) {
      float sum = 0;
      double exact = 0;
      for (std::int64_t k = 0; k < kRow; ++k) {
        const float b = uniform_at(2, k, j);
        if (k < kRow - left_out) sum += a.values[k] * b;
        exact += static_cast<double>(a.values[k]) * b;
      }
      squares += (sum - exact) * (sum - exact);
    }
    return std::sqrt(squares);
  };
  EXPECT_LT(error(0), allowed / kMeanMargin);
  EXPECT_GT(error(kRow / 1000), 50 * allowed);
  // Sums that are truncated all lose to one side.
  KernelInfo truncates;
  truncates.accumulation = Accumulation::fp32_tensor_core;
  const double more =
      mean_error(a, kColumns, error_bound(truncates, Precision::bf16, ElementType::f32));
  EXPECT_NEAR(more, 3 * std::sqrt(kRow) * allowed, 1e-6 * more);
  EXPECT_GT(error(kRow / 100), more);
}

}  // namespace
}  // namespace spmmbench
