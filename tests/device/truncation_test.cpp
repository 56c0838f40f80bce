// What the bound of tensor cores rests on (spmmbench/error_bound.hpp), tried on the device through
// every kernel that uses them: terms are aligned to the largest and keep 24 bits at least, so each
// nonzero costs at most two truncations of 2^-23 of it.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iostream>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "devices.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"
#include "verify/bound.hpp"
#include "verify/reference.hpp"

namespace spmmbench::test {
namespace {

constexpr std::int64_t kSize = 64;  // of the dense A and B: one tile of every kernel

struct Case {
  const Kernel* kernel;
  Precision precision;
};

// `scaled`: in fp8, whose sums have fewer bits, or all others.
std::vector<Case> tensor_core_cases(bool scaled) {
  std::vector<Case> cases;
  for (const Kernel* kernel : Registry<Kernel>::instance().sorted())
    if (kernel->info().accumulation == Accumulation::fp32_tensor_core)
      for (const Precision precision : kernel->info().precisions)
        if (precision != Precision::fp32 && precision != Precision::fp64 &&
            is_scaled(precision) == scaled)
          cases.push_back({kernel, precision});
  return cases;
}

std::string name_of(const Case& c) {
  return c.kernel->info().name + "__" + std::string(to_string(c.precision));
}
void PrintTo(const Case& c, std::ostream* out) { *out << name_of(c); }  // found by GoogleTest

using ValueAt = std::function<double(std::int64_t, std::int64_t)>;

CsrMatrix dense_a(const ValueAt& value) {
  CsrMatrix a{kSize, kSize, {0}, {}, {}};
  for (std::int64_t i = 0; i < kSize; ++i) {
    for (std::int64_t k = 0; k < kSize; ++k) {
      a.col_idx.push_back(static_cast<std::int32_t>(k));
      a.values.push_back(static_cast<float>(value(i, k)));
    }
    a.row_ptr.push_back((i + 1) * kSize);
  }
  return a;
}

class TruncationTest : public testing::TestWithParam<Case> {
 protected:
  // C of the dense product, and the verdict on it. Every value must be exact in the precision.
  void multiply(Device& device, const ValueAt& a_value, const ValueAt& b_value) {
    const Case& param = GetParam();
    const KernelInfo& info = param.kernel->info();
    const CsrMatrix a = dense_a(a_value);
    Problem problem;
    problem.a = &a;
    problem.precision = param.precision;
    problem.n = kSize;
    problem.layout = is_scaled(param.precision) ? info.layouts.back() : info.layouts.front();
    const std::unique_ptr<RowOrders> orders = make_row_orders(a, {"none", {}});
    problem.orders = orders.get();
    const Support support = check_support(*param.kernel, problem, device.info());
    if (!support.ok) GTEST_SKIP() << support.reason;
    DenseView b = make_dense_view(kSize, kSize, problem.layout, storage_type(param.precision));
    DenseView c = make_dense_view(kSize, kSize, problem.layout, ElementType::f32);
    std::vector<unsigned char> host(b.bytes());
    for (std::int64_t k = 0; k < kSize; ++k)
      for (std::int64_t j = 0; j < kSize; ++j) {
        const auto value = static_cast<float>(b_value(k, j));
        ASSERT_EQ(round_to(param.precision, value), value);
        store_element(b.type, host.data(),
                      b.layout == Layout::row_major ? k * b.ld + j : j * b.ld + k, value);
      }
    for (const float value : a.values) ASSERT_EQ(round_to(param.precision, value), value);
    const Buffer b_memory = device.upload(host), c_memory = device.allocate(c.bytes());
    b.data = b_memory.data();
    c.data = c_memory.data();
    device.fill_bytes(c.data, 0xFF, c.bytes());
    StageTimer stages;
    const auto prepared = param.kernel->prepare(problem.operand(), problem.options, device, stages);
    const auto plan = prepared->bind(problem.shape(), stages);
    plan->inspect_b(b, stages);
    plan->launch(b, c, device.stream());
    std::vector<float> out(c.bytes() / sizeof(float));
    device.download(out.data(), c.data, c.bytes());
    for (std::int64_t i = 0; i < kSize; ++i)
      for (std::int64_t j = 0; j < kSize; ++j)
        c_[i * kSize + j] = out[c.layout == Layout::row_major ? i * c.ld + j : j * c.ld + i];
    const auto reference = make_reference(a, {}, b, device);
    verdict_ = reference->check(c, error_bound(info, param.precision, ElementType::f32));
  }

  // The largest power of two below 1 that the precision holds with all its fraction bits set:
  // 2 - ulp, scaled by 2^exponent.
  double all_ones(int exponent) const {
    const float two = round_to(GetParam().precision, 1.999F);
    return std::ldexp(std::min(two, 2.0F - 2 * epsilon()), exponent);
  }
  float epsilon() const {  // half an ulp of 1
    float ulp = 1;
    while (round_to(GetParam().precision, 1 + ulp / 2) != 1) ulp /= 2;
    return ulp / 2;
  }

  std::vector<float> c_ = std::vector<float>(kSize * kSize);
  Verdict verdict_;
};

TEST_P(TruncationTest, SumsThatFit24BitsAreExact) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  // Row i: 2^9 at column i, 1/8 at column j + 1, else 0. C = 2^17 + 2^-6 in 24 bits where the two
  // columns differ.
  multiply(
      device, [](std::int64_t i, std::int64_t k) { return k == i ? 512.0 : 0.125; },
      [](std::int64_t k, std::int64_t j) { return k % 2 == j % 2 ? 256.0 : 0.0; });
  if (IsSkipped() || HasFatalFailure()) return;
  for (std::int64_t i = 0; i < kSize; ++i)
    for (std::int64_t j = 0; j < kSize; ++j)
      ASSERT_EQ(c_[i * kSize + j], i % 2 == j % 2 ? 512.0F * 256 + 31 * 32 : 32 * 32.0F)
          << i << ", " << j;
  multiply(
      device, [](std::int64_t i, std::int64_t k) { return k == i ? 512.0 : 0.125; },
      [](std::int64_t k, std::int64_t j) {
        return k == j ? 256.0 : (k + 1) % kSize == j ? 0.125 : 0;
      });
  for (std::int64_t i = 0; i < kSize; ++i) ASSERT_EQ(c_[i * kSize + i], 0x1p17F + 0x1p-6F) << i;
}

// One term of 1 and 63 that lie just below its last bit: lost or kept, each costs less than 2^-23.
TEST_P(TruncationTest, ATermBelowTheLastBitCostsAtMostOneTruncation) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const double sign : {1.0, -1.0}) {
    const double a_small = all_ones(-12), b_small = 0x1p-12;  // their product: almost 2^-23
    multiply(
        device, [&](std::int64_t i, std::int64_t k) { return k == i ? 1.0 : sign * a_small; },
        [&](std::int64_t k, std::int64_t j) { return k == j ? 1.0 : b_small; });
    if (IsSkipped() || HasFatalFailure()) return;
    EXPECT_TRUE(verdict_.ok) << verdict_.error_over_bound;
    double most = 0;
    for (std::int64_t i = 0; i < kSize; ++i) {
      const double exact = 1 + sign * 63 * a_small * b_small;
      most = std::max(most, std::abs(c_[i * kSize + i] - exact));
    }
    EXPECT_LE(most, 64 * 0x1p-23);
    RecordProperty(sign > 0 ? "lost_of_2^-23" : "lost_of_2^-23_negative",
                   std::to_string(most / 63 / 0x1p-23));
    std::cout << "  loses " << most / 63 / 0x1p-23 << " x 2^-23 per term, sign " << sign << "\n";
  }
}

// Products spread over 24 binades with all fraction bits set, in every order that 64 rows and
// columns give: nothing comes near the bound but what it was derived from.
TEST_P(TruncationTest, NoMixOfExponentsPassesTheBound) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto value = [&](std::uint64_t stream, std::int64_t i, std::int64_t j) {
      const std::uint64_t hash = hash_position(seed * 8 + stream, i, j);
      const int range = 1 + static_cast<int>(seed % 12);
      const int exponent = -static_cast<int>((hash >> 8) % static_cast<std::uint64_t>(range));
      // Odd seeds: one sign, so that truncation always errs to the same side.
      const double sign = seed % 2 == 0 && (hash & 1) != 0 ? -1 : 1;
      return sign * ((hash & 2) != 0 ? all_ones(exponent) : std::ldexp(1.0, exponent));
    };
    multiply(
        device, [&](std::int64_t i, std::int64_t k) { return value(1, i, k); },
        [&](std::int64_t k, std::int64_t j) { return value(2, k, j); });
    if (IsSkipped() || HasFatalFailure()) return;
    worst = std::max(worst, verdict_.error_over_bound);
    ASSERT_TRUE(verdict_.ok) << "seed " << seed << ": " << verdict_.error_over_bound;
  }
  RecordProperty("error_over_bound", std::to_string(worst));
  std::cout << "  error / bound " << worst << "\n";
}

TEST_P(TruncationTest, SubnormalProductsAndInputsErrByNoMoreThanAFlush) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const bool half = GetParam().precision == Precision::fp16;
  // fp16 has no products below 2^-48, so its subnormal inputs are tried instead.
  const double a = half ? 0x1p-24 : 0x1p-100, b = half ? 1 : 0x1p-40;
  multiply(
      device, [&](std::int64_t i, std::int64_t k) { return k == i ? a : 0; },
      [&](std::int64_t, std::int64_t) { return b; });
  if (IsSkipped() || HasFatalFailure()) return;
  EXPECT_TRUE(verdict_.ok) << verdict_.error_over_bound;
  if (half) {
    EXPECT_EQ(c_[0], 0x1p-24F);
  }
  std::cout << "  2^" << std::log2(a) << " * 2^" << std::log2(b) << " = " << c_[0] << "\n";
  if (half) return;
  multiply(
      device, [&](std::int64_t i, std::int64_t k) { return k == i ? 0x1p-130 : 0; },
      [&](std::int64_t, std::int64_t) { return 1; });
  EXPECT_TRUE(verdict_.ok) << verdict_.error_over_bound;
  std::cout << "  2^-130 * 1 = " << c_[0] << "\n";
}

// Products and sums keep 13 bits behind the leading one of the largest term.
class Fp8TruncationTest : public TruncationTest {};

TEST_P(Fp8TruncationTest, SumsThatFitFourteenBitsAreExactAndWhatLiesBelowIsLost) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  constexpr double kLargest = 256;  // its square, 2^16, has a last bit of 2^3
  const double odd = GetParam().precision == Precision::fp8_e5m2 ? 2.5 : 2.75;
  for (const double sign : {1.0, -1.0}) {
    multiply(
        device, [&](std::int64_t i, std::int64_t k) { return k == i ? kLargest : sign * 2; },
        [&](std::int64_t k, std::int64_t j) { return k == j ? kLargest : 4; });
    if (IsSkipped() || HasFatalFailure()) return;
    for (std::int64_t i = 0; i < kSize; ++i)
      ASSERT_EQ(c_[i * kSize + i], kLargest * kLargest + sign * 63 * 8) << i;
    multiply(
        device, [&](std::int64_t i, std::int64_t k) { return k == i ? kLargest : sign * odd; },
        [&](std::int64_t k, std::int64_t j) { return k == j ? kLargest : odd; });
    EXPECT_TRUE(verdict_.ok) << verdict_.error_over_bound;
    std::cout << "  keeps " << (c_[0] - kLargest * kLargest) / (sign * 63 * odd * odd)
              << " of terms just below the last bit\n";
  }
}

TEST_P(Fp8TruncationTest, NoMixOfExponentsPassesTheBound) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  double worst = 0;
  const double largest = GetParam().precision == Precision::fp8_e5m2 ? 1.75 : 1.875;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto value = [&](std::uint64_t stream, std::int64_t i, std::int64_t j) {
      const std::uint64_t hash = hash_position(seed * 8 + stream, i, j);
      const int exponent = 7 - static_cast<int>((hash >> 8) % (1 + seed % 13));
      const double sign = seed % 2 == 0 && (hash & 1) != 0 ? -1 : 1;
      return sign * std::ldexp((hash & 2) != 0 ? largest : 1.0, exponent);
    };
    multiply(
        device, [&](std::int64_t i, std::int64_t k) { return value(1, i, k); },
        [&](std::int64_t k, std::int64_t j) { return value(2, k, j); });
    if (IsSkipped() || HasFatalFailure()) return;
    worst = std::max(worst, verdict_.error_over_bound);
    ASSERT_TRUE(verdict_.ok) << "seed " << seed << ": " << verdict_.error_over_bound;
  }
  std::cout << "  error / bound " << worst << "\n";
}

INSTANTIATE_TEST_SUITE_P(registry, Fp8TruncationTest, testing::ValuesIn(tensor_core_cases(true)),
                         [](const auto& info) { return name_of(info.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Fp8TruncationTest);

INSTANTIATE_TEST_SUITE_P(registry, TruncationTest, testing::ValuesIn(tensor_core_cases(false)),
                         [](const auto& info) { return name_of(info.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TruncationTest);

}  // namespace
}  // namespace spmmbench::test
