#include "run/given_b.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

std::string refusal(const DenseMatrix& b, const std::vector<PrecisionGroup>& groups) {
  try {
    expect_finite(b, "b.npy", groups);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(GivenB, MustBeFiniteInEveryPrecisionOfTheRun) {
  const std::vector<PrecisionGroup> fp32 = {{Precision::fp32, ElementType::f32, true, {}}};
  std::vector<PrecisionGroup> both = fp32;
  both.push_back({Precision::fp16, ElementType::f32, false, {}});
  DenseMatrix b{2, 3, {1, 2, 65504, 4, 5, 70000}};
  EXPECT_EQ(refusal(b, fp32), "");
  EXPECT_EQ(refusal(b, both),
            "b.npy: row 1, column 2 of B, from 0, is 70000: expected numbers that are finite in "
            "fp16");
  b.values[5] = -65504;
  EXPECT_EQ(refusal(b, both), "");
  b.values[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refusal(b, fp32),
            "b.npy: row 0, column 1 of B, from 0, is nan: expected numbers that are finite in "
            "fp32");
}

TEST(GivenB, InFp8IsFiniteOverItsScaleWhichHasARange) {
  const std::vector<PrecisionGroup> fp8 = {{Precision::fp8_e4m3, ElementType::f32, true, {}}};
  DenseMatrix b{1, 2, {1, 70000}};
  EXPECT_EQ(refusal(b, fp8), "");
  b.values[0] = std::numeric_limits<float>::infinity();
  EXPECT_NE(refusal(b, fp8), "");
  b.values = {0, 0x1p41F};
  EXPECT_EQ(refusal(b, fp8),
            "b.npy: the greatest magnitude of B is 2199023300000: expected 2^-40 to 2^40, or 0, in "
            "fp8_e4m3");
}

}  // namespace
}  // namespace spmmbench
