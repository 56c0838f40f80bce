#include "verify/predicted_sum.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace spmmbench {
namespace {

// 1 and three times 3/4 of the last bit of its sums.
const CsrMatrix kFourNonzeros{1, 4, {0, 4}, {0, 1, 2, 3}, {1, 0x1.8p-12F, 0x1.8p-12F, 0x1.8p-12F}};

std::vector<float> sums_of(const SumOrder& order, const CsrMatrix& a, double first_of_b = 1) {
  return predicted_sums(
      order, KernelInfo{}, Precision::fp16, a,
      [=](std::int64_t k) { return k == 0 ? first_of_b : 0x1p-12; }, 1);
}

float sum_in_order(const SumOrder& order, Precision precision = Precision::fp16, int promoted = 0) {
  KernelInfo kernel;
  kernel.promoted_columns = promoted;
  const std::vector<float> sums = predicted_sums(
      order, kernel, precision, kFourNonzeros, [](std::int64_t k) { return k == 0 ? 1 : 0x1p-12; },
      2);
  EXPECT_EQ(sums.size(), 1U);
  return sums.at(0);
}

TEST(PredictedSum, TakesInstructionAfterInstructionAndAddsPartsInFp32) {
  EXPECT_EQ(sum_in_order({{0, 1, 2, 3}, {1, 2, 3, 4}, {4}}), 1);
  EXPECT_EQ(sum_in_order({{0, 1, 2, 3}, {4}, {1}}), 1 + 0x1p-22F) << "3 x 3/4 at once";
  EXPECT_EQ(sum_in_order({{1, 2, 3, 0}, {1, 2, 3, 4}, {4}}), 1 + 0x1p-22F);
  EXPECT_EQ(sum_in_order({{0, 1, 2, 3}, {1, 4}, {1, 2}}), 1 + 0x1p-22F) << "two parts";
  EXPECT_EQ(sum_in_order({{0, 1}, {1, 2}, {1, 2}}), 1 + 0x1p-23F) << "rounded to nearest";
  EXPECT_EQ(sum_in_order({}), 0);
}

TEST(PredictedSum, MultipliesAPartByTheScaleOfItsBlockAsItAddsIt) {
  KernelInfo kernel;
  kernel.promoted_columns = 128;
  const auto sum = [&](const SumOrder& order) {
    return predicted_sums(
        order, kernel, Precision::fp8_e4m3_block, CsrMatrix{1, 300, {0, 2}, {3, 200}, {3, 5}},
        [](std::int64_t) { return 2; }, 1,
        [](std::int64_t k) { return k < 128 ? 1 + 0x1p-23F : -0.6F; });
  };
  EXPECT_EQ(sum({{0, 1}, {1, 2}, {1, 2}}),
            std::vector{std::fma(10.0F, -0.6F, 6.0F * (1 + 0x1p-23F))});
  EXPECT_EQ(sum({{1}, {0, 1}, {1, 2}}), std::vector{10.0F * -0.6F})
      << "an instruction without a nonzero";
}

// 1, 5/8 of the last bit of its sums, and -1.
SumOrder three_parts(std::vector<SumOrder::Level> levels) {
  return {{0, 1, 2}, {1, 2, 3}, {1, 2, 3}, std::move(levels)};
}
const CsrMatrix kOneBitAndMinusOne{1, 3, {0, 3}, {0, 1, 0}, {1, 0x1.4p-12F, -1}};

TEST(PredictedSum, AddsLevelAfterLevel) {
  const std::vector<float> in_order = {0x1p-23F}, last_two_first = {0x1p-24F};
  EXPECT_EQ(sums_of(three_parts({}), kOneBitAndMinusOne), in_order);
  EXPECT_EQ(sums_of(three_parts({{2}}), kOneBitAndMinusOne), in_order);
  EXPECT_EQ(sums_of(three_parts({{3}}), kOneBitAndMinusOne), in_order);
  const SumOrder reversed{{2, 1, 0}, {1, 2, 3}, {1, 2, 3}};
  EXPECT_EQ(sums_of(reversed, kOneBitAndMinusOne), last_two_first) << "-1 has finer sums";
}

TEST(PredictedSum, HasWhatEveryOrderGivesWhereTermsAreAddedAsTheyCome) {
  EXPECT_EQ(sums_of(three_parts({{3, true}}), kOneBitAndMinusOne).size(), 3U);
  EXPECT_EQ(sums_of(three_parts({{2, true}}), kOneBitAndMinusOne).size(), 1U)
      << "two have one sum, whichever comes first";
  EXPECT_TRUE(sums_of(three_parts({{kMostAsTheyCome + 1, true}}), kOneBitAndMinusOne).empty());
}

TEST(PredictedSum, OnCudaCoresRoundsOnceForEachEntry) {
  const CsrMatrix a{1, 2, {0, 2}, {0, 1}, {1, 0x1p-12F}};
  SumOrder order{{0, 1}, {2}, {1}, {}, true};
  EXPECT_EQ(sums_of(order, a, 1 + 0x1p-20), std::vector<float>{1 + 0x1p-20F});
  EXPECT_EQ(sums_of(order, a, 1 + 0x1p-23), std::vector<float>{1 + 0x1p-22F})
      << "an even last bit, where half of it is added";
  order.on_cuda_cores = false;
  EXPECT_EQ(sums_of(order, a, 1 + 0x1p-23), std::vector<float>{1 + 0x1p-23F}) << "truncated";
}

TEST(PredictedSum, InFp8IsTimesTheScalesAndHasTheBitsOfFp16WhereThatMultiplies) {
  const SumOrder order{{1, 0}, {1, 2}, {2}};
  EXPECT_EQ(sum_in_order(order, Precision::fp8_e4m3), 2);
  EXPECT_EQ(sum_in_order({{1, 2, 3, 0}, {4}, {1}}, Precision::fp8_e4m3, 1), 2 + 0x1p-21F);
}

TEST(SameBits, TellsZerosApartAndTakesEveryNanForTheSame) {
  EXPECT_TRUE(same_bits(1, 1));
  EXPECT_FALSE(same_bits(0.0, -0.0));
  EXPECT_TRUE(same_bits(NAN, -NAN));
  EXPECT_FALSE(same_bits(1, NAN));
}

}  // namespace
}  // namespace spmmbench
