#include "verify/predicted_sum.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace spmmbench {
namespace {

// 1 and three times 3/4 of the last bit of its sums.
const CsrMatrix kFourNonzeros{1, 4, {0, 4}, {0, 1, 2, 3}, {1, 0x1.8p-12F, 0x1.8p-12F, 0x1.8p-12F}};

float sum_in_order(const SumOrder& order, Precision precision = Precision::fp16, int promoted = 0) {
  KernelInfo kernel;
  kernel.promoted_columns = promoted;
  return predicted_sum(
      order, kernel, precision, kFourNonzeros, [](std::int64_t k) { return k == 0 ? 1 : 0x1p-12; },
      2);
}

TEST(PredictedSum, TakesInstructionAfterInstructionAndAddsPartsInFp32) {
  EXPECT_EQ(sum_in_order({{0, 1, 2, 3}, {1, 2, 3, 4}, {4}}), 1);
  EXPECT_EQ(sum_in_order({{0, 1, 2, 3}, {4}, {1}}), 1 + 0x1p-22F) << "3 x 3/4 at once";
  EXPECT_EQ(sum_in_order({{1, 2, 3, 0}, {1, 2, 3, 4}, {4}}), 1 + 0x1p-22F);
  EXPECT_EQ(sum_in_order({{0, 1, 2, 3}, {1, 4}, {1, 2}}), 1 + 0x1p-22F) << "two parts";
  EXPECT_EQ(sum_in_order({{0, 1}, {1, 2}, {1, 2}}), 1 + 0x1p-23F) << "rounded to nearest";
  EXPECT_EQ(sum_in_order({}), 0);
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
