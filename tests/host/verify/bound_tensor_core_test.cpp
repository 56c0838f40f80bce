// The derived bound of tensor cores against their model: it holds, and one bit less would not.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "spmmbench/reference_sum.hpp"
#include "verify/bound.hpp"
#include "verify/tensor_core.hpp"

namespace spmmbench {
namespace {

constexpr std::array kTensorPrecisions = {Precision::fp16, Precision::bf16, Precision::tf32,
                                          Precision::fp8_e4m3, Precision::fp8_e5m2};

struct Products {
  std::vector<float> a, b;

  void add(double x, double y) {
    a.push_back(static_cast<float>(x));
    b.push_back(static_cast<float>(y));
  }
};

// The error over the bound, with `together` products in an instruction.
double error_over_bound(const Products& products, Precision precision, std::size_t together,
                        bool raise_subnormals = true) {
  KernelInfo kernel;
  kernel.accumulation = Accumulation::fp32_tensor_core;
  const double least = raise_subnormals ? smallest_normal(storage_type(precision)) : 0;
  ReferenceSum reference;
  float sum = 0;
  for (std::size_t i = 0; i < products.a.size(); i += together) {
    const std::size_t count = std::min(together, products.a.size() - i);
    sum = multiply_accumulate(tensor_core(precision), std::span(products.a).subspan(i, count),
                              std::span(products.b).subspan(i, count), sum);
    for (std::size_t j = i; j < i + count; ++j) reference.add(products.a[j], products.b[j], least);
  }
  return judge(sum, reference.sum, reference.magnitude, static_cast<double>(products.a.size()),
               error_bound(kernel, precision, ElementType::f32))
      .over_bound;
}

TEST(BoundOfTensorCores, HoldsForEveryMixOfExponentsSignsAndLengths) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> significand(1, 2);
  for (const Precision precision : kTensorPrecisions) {
    const int least = std::ilogb(smallest_subnormal(storage_type(precision)));
    const int most = std::min(-least, std::ilogb(overflow_threshold(storage_type(precision))) - 1);
    for (int round = 0; round < 2'000; ++round) {
      const int spread = static_cast<int>(random() % (most + 1));
      const int centre = round % 3 == 0 ? least + spread / 2 : 0;
      const auto draw = [&] {
        const int exponent = centre + static_cast<int>(random() % (2 * spread + 1)) - spread;
        const double value = std::ldexp(significand(random), std::clamp(exponent, least, most));
        return round_to(precision, round % 2 == 0 && random() % 2 == 0 ? -value : value);
      };
      Products products;
      for (std::size_t k = 1 + random() % 64; k > 0; --k) products.add(draw(), draw());
      ASSERT_LE(error_over_bound(products, precision, 1 + random() % 8), 1)
          << to_string(precision) << ", round " << round;
    }
  }
}

// One nonzero in an instruction, just below the last bit of the sum, so that all of it is lost.
TEST(BoundOfTensorCores, WouldNotHoldWithOneBitLess) {
  for (const Precision precision : kTensorPrecisions) {
    const bool is_fp8 = is_scaled(precision);
    const double below_two = 2 - std::ldexp(1, 1 - significand_bits(precision));
    Products products;
    products.add(16, 16);
    for (int i = 0; i < 99; ++i)
      products.add(below_two * (is_fp8 ? 0x1p-6 : 0x1p-8), is_fp8 ? 1 : 0x1p-8);
    const double over = error_over_bound(products, precision, 1);
    EXPECT_LE(over, 1) << to_string(precision);
    EXPECT_GT(over, 0.5) << to_string(precision);
  }
}

// Tensor cores align 2^-24 as if it were 2^-14, so smaller products lose more than their share.
TEST(BoundOfTensorCores, CountsASubnormalFactorAsTheLeastNormalOne) {
  Products products;
  products.add(0x1p-24, 1);
  for (int i = 0; i < 15; ++i) products.add(0x1.ffcp-14, 0x1p-24);
  EXPECT_LE(error_over_bound(products, Precision::fp16, 16), 1);
  EXPECT_GT(error_over_bound(products, Precision::fp16, 16, false), 100);
}

}  // namespace
}  // namespace spmmbench
