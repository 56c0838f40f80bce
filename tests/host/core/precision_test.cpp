#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "spmmbench/precision.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {
namespace {

using Half = Element<ElementType::f16>;

TEST(ElementTypes, EveryBitPatternOfSixteenBitsRoundTrips) {
  for (const ElementType type : {ElementType::f16, ElementType::bf16})
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const float value = decode(type, bits);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decode(type, encode(type, value))));
        continue;
      }
      ASSERT_EQ(encode(type, value), bits) << to_string(type);
    }
}

double stored_as(ElementType type, double value) {
  std::uint64_t bits = 0;
  store_element(type, &bits, 0, value);
  return load_element(type, &bits, 0);
}

TEST(ElementTypes, SayWhereTheyEnd) {
  for (const ElementType type : kElementTypes) {
    SCOPED_TRACE(to_string(type));
    const auto stored = [&](double value) { return stored_as(type, value); };
    EXPECT_EQ(parse_element_type(to_string(type)), type);
    EXPECT_EQ(stored(1 + unit_roundoff(type)), 1) << "a tie, to even";
    EXPECT_EQ(stored(smallest_subnormal(type)), smallest_subnormal(type));
    EXPECT_EQ(stored(smallest_subnormal(type) / 2), 0) << "a tie, to even";
    EXPECT_EQ(stored(smallest_normal(type)), smallest_normal(type));
    if (type == ElementType::e4m3) {
      EXPECT_EQ(stored(overflow_threshold(type)), 448) << "a tie, to even";
      EXPECT_TRUE(std::isnan(stored(464.5)));
      continue;
    }
    EXPECT_TRUE(std::isinf(stored(overflow_threshold(type))));
    const double largest = type == ElementType::f64
                               ? std::numeric_limits<double>::max()
                               : overflow_threshold(type) * (1 - 2 * unit_roundoff(type));
    EXPECT_FALSE(std::isinf(stored(largest)));
  }
  EXPECT_EQ(overflow_threshold(ElementType::f16), 65520);
  EXPECT_EQ(smallest_subnormal(ElementType::f32), 0x1p-149);
  EXPECT_EQ(smallest_subnormal(ElementType::f64), 0x1p-1074);
  EXPECT_TRUE(std::isinf(overflow_threshold(ElementType::f64)));
}

// The encodings that the OCP's document of 8-bit floating point lists.
TEST(E4m3, HasTheValuesOfItsStandardAndRoundsToTheNearest) {
  constexpr ElementType kType = ElementType::e4m3;
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    const float value = decode(kType, bits);
    EXPECT_EQ(std::isnan(value), (bits & 0x7FU) == 0x7FU);
    if (!std::isnan(value)) {
      EXPECT_EQ(encode(kType, value), bits);
    }
  }
  EXPECT_EQ(decode(kType, 0x7E), 448);
  EXPECT_EQ(decode(kType, 0x08), 0x1p-6F);
  EXPECT_EQ(decode(kType, 0x07), 0.875F * 0x1p-6F);
  EXPECT_EQ(decode(kType, 0x81), -0x1p-9F);
  constexpr Precision kFp8 = Precision::fp8_e4m3;
  EXPECT_EQ(round_to(kFp8, 17.0F), 16.0F) << "a tie, to even";
  EXPECT_EQ(round_to(kFp8, 19.0F), 20.0F) << "a tie, to even";
  EXPECT_EQ(round_to(kFp8, 0x1.8p-9F), 0x1p-8F) << "a tie between subnormals";
  EXPECT_EQ(round_to(kFp8, 0x1p-10F), 0.0F);
  EXPECT_TRUE(std::isnan(round_to(kFp8, std::numeric_limits<float>::infinity())));
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const float value = 448 * uniform_at(1, i, 0);
    EXPECT_LE(std::abs(round_to(kFp8, value) - value),
              std::max(0x1p-4F * std::abs(value), 0x1p-10F));
  }
}

TEST(E5m2, IsTheUpperHalfOfFp16) {
  constexpr ElementType kType = ElementType::e5m2;
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    const float value = decode(kType, bits), half = decode(ElementType::f16, bits << 8);
    EXPECT_EQ(std::isnan(value), std::isnan(half));
    if (std::isnan(value)) continue;
    EXPECT_EQ(value, half);
    EXPECT_EQ(encode(kType, value), bits);
  }
  EXPECT_EQ(decode(kType, 0x7B), 57344);
  EXPECT_EQ(overflow_threshold(kType), 61440);
  constexpr Precision kFp8 = Precision::fp8_e5m2;
  EXPECT_EQ(round_to(kFp8, 9.0F), 8.0F) << "a tie, to even";
  EXPECT_EQ(round_to(kFp8, 11.0F), 12.0F) << "a tie, to even";
  EXPECT_EQ(round_to(kFp8, 0x1p-17F), 0.0F);
  EXPECT_TRUE(std::isinf(round_to(kFp8, 61440.0F)));
  EXPECT_EQ(scale_of(kFp8, 2 * 57344), 2);
}

TEST(E4m3, ItsScaleMakesTheGreatestMagnitudeTheLargestNumber) {
  EXPECT_EQ(scale_of(Precision::fp8_e4m3, 896), 2);
  EXPECT_EQ(scale_of(Precision::fp8_e4m3, 0), 1);
  EXPECT_EQ(scale_of(Precision::fp16, 896), 1);
  for (std::uint64_t i = 0; i < 10'000; ++i)
    EXPECT_NEAR(uniform_in(Precision::fp8_e4m3, 7, i, 3) / 448, uniform_at(7, i, 3), 0x1p-4);
}

TEST(Precisions, AreStoredWithoutFurtherRounding) {
  for (const Precision precision : kPrecisions) {
    EXPECT_EQ(parse_precision(to_string(precision)), precision);
    for (std::uint64_t i = 0; i < 10000; ++i) {
      const float value = round_to(precision, uniform_at(3, i, 0));
      EXPECT_EQ(round_to(precision, value), value);
      EXPECT_EQ(stored_as(storage_type(precision), value), value);
    }
  }
}

TEST(Half, RoundsHalfWayToEvenAndOverflowsToInfinity) {
  EXPECT_EQ(round_to(Precision::fp16, 1 + 0x1p-11F), 1.0F);             // tie to even, down
  EXPECT_EQ(round_to(Precision::fp16, 1 + 3 * 0x1p-11F), 1 + 0x1p-9F);  // tie to even, up
  EXPECT_EQ(round_to(Precision::fp16, 65519.0F), 65504.0F);
  EXPECT_TRUE(std::isinf(round_to(Precision::fp16, 65520.0F)));
  EXPECT_EQ(round_to(Precision::fp16, 0x1p-25F), 0.0F);  // half the smallest subnormal
  EXPECT_EQ(round_to(Precision::fp16, 0x1.8p-25F), 0x1p-24F);
  EXPECT_EQ(round_to(Precision::fp16, 0x1.ff8p-15F), 0x1.ff8p-15F);  // a subnormal, exact
}

TEST(Rounding, ErrsByAtMostTheUnitRoundoff) {
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const float value = uniform_at(1, i, 0);
    EXPECT_EQ(round_to(Precision::fp32, value), value);
    EXPECT_LE(std::abs(round_to(Precision::tf32, value) - value), 0x1p-11F * std::abs(value));
    EXPECT_LE(std::abs(round_to(Precision::bf16, value) - value), 0x1p-8F * std::abs(value));
    EXPECT_LE(std::abs(round_to(Precision::fp16, value) - value),
              std::max(0x1p-11F * std::abs(value), 0x1p-25F));
    EXPECT_EQ(std::bit_cast<std::uint32_t>(round_to(Precision::tf32, value)) & 0x1FFFU, 0U);
  }
}

TEST(Rounding, KeepsInfinityAndNan) {
  for (const Precision p : {Precision::tf32, Precision::fp16, Precision::bf16}) {
    EXPECT_TRUE(std::isinf(round_to(p, std::numeric_limits<float>::infinity())));
    EXPECT_TRUE(std::isnan(round_to(p, std::numeric_limits<float>::quiet_NaN())));
  }
}

TEST(Random, IsNeverZeroNorOneAndIsCentred) {
  double sum = 0, squares = 0;
  std::set<float> distinct;
  constexpr int kCount = 200000;
  for (int i = 0; i < kCount; ++i) {
    const float value = uniform_at(42, i / 500, i % 500);
    ASSERT_NE(value, 0.0F);
    ASSERT_LT(std::abs(value), 1.0F);
    sum += value;
    squares += static_cast<double>(value) * value;
    distinct.insert(value);
  }
  EXPECT_NEAR(sum / kCount, 0.0, 0.01);
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.01);
  EXPECT_GT(distinct.size(), kCount * 0.98);
}

TEST(Random, InFp64HasTheValuesOfFp32WithTheBitsThatFollow) {
  int more = 0;
  for (int i = 0; i < 10000; ++i) {
    const double value = uniform_in(Precision::fp64, 42, i / 500, i % 500);
    ASSERT_NE(value, 0);
    ASSERT_LT(std::abs(value), 1);
    EXPECT_LT(std::abs(value - uniform_at(42, i / 500, i % 500)), 0x1p-24);
    EXPECT_EQ(round_to(Precision::fp64, value), value);
    more += static_cast<double>(static_cast<float>(value)) != value ? 1 : 0;
    EXPECT_EQ(uniform_in(Precision::fp16, 42, i, 3),
              round_to(Precision::fp16, uniform_at(42, i, 3)));
  }
  EXPECT_GT(more, 9900);
}

TEST(Random, DependsOnSeedRowAndColumn) {
  EXPECT_NE(uniform_at(1, 2, 3), uniform_at(2, 2, 3));
  EXPECT_NE(uniform_at(1, 2, 3), uniform_at(1, 3, 2));
  EXPECT_NE(stream_seed(1, kStreamA), stream_seed(1, kStreamB));
}

}  // namespace
}  // namespace spmmbench
