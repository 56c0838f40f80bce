// The model of tensor cores (verify/tensor_core.hpp) against the device: every bit of 10^5 results
// and more of each instruction and type that kernels use.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "devices.hpp"
#include "tensor_core_tiles.hpp"
#include "verify/tensor_core.hpp"

namespace spmmbench::test::tensor_cores {
namespace {

constexpr int kTiles = 6;  // of each mix: 12,288 results

// Exponents are drawn around a centre, uniformly as far as `spread`.
struct Exponents {
  int centre, spread;
};
struct Mix {
  const char* name;
  Exponents a, b, sums;
  double zeros = 0, specials = 0;  // shares: of both signs; of infinity and NaN
};

// Of a precision whose inputs are 2^least to 2^largest.
std::vector<Mix> mixes(int least, int largest) {
  const int wide = std::min(largest, 40), low = std::max(least, -74);
  return {{"near", {0, 1}, {0, 1}, {0, 3}},
          {"some binades", {0, 6}, {0, 6}, {0, 12}},
          {"wide", {0, wide}, {0, wide}, {0, 30}, 0.1},
          {"large sums", {0, 3}, {0, 3}, {14, 14}},
          {"small sums", {0, 3}, {0, 3}, {-14, 14}},
          {"tiny", {low, 8}, {low, 8}, {2 * low, 14}, 0.2},
          {"tiny by large", {least, 12}, {largest, 12}, {least + largest, 24}, 0.1},
          {"huge", {std::min(largest, 64), 2}, {std::min(largest, 63), 2}, {126, 1}},
          {"many zeros", {0, wide}, {0, wide}, {-20, 20}, 0.9},
          {"special", {0, 3}, {0, 3}, {0, 4}, 0.05, 0.02}};
}

class Draw {
 public:
  explicit Draw(const Mix& mix) : mix_(mix) {}

  float next(const Exponents& exponents) {
    if (share_(random_) < mix_.zeros) return random_() % 2 == 0 ? 0.0F : -0.0F;
    if (share_(random_) < mix_.specials) {
      const std::array<float, 3> specials{HUGE_VALF, -HUGE_VALF, NAN};
      return specials[random_() % specials.size()];
    }
    const int exponent =
        std::uniform_int_distribution(-exponents.spread, exponents.spread)(random_);
    const double significand = std::uniform_real_distribution(1.0, 2.0)(random_);
    const double value = std::ldexp(significand, exponents.centre + exponent);
    return static_cast<float>(random_() % 2 == 0 ? value : -value);
  }

 private:
  const Mix& mix_;
  std::mt19937_64 random_{7};
  std::uniform_real_distribution<double> share_{0, 1};
};

// Rounded to the precision, and not above its largest number.
std::vector<float> inputs(Draw& draw, const Exponents& exponents, std::size_t count,
                          Precision precision) {
  std::vector<float> values(count);
  for (float& value : values) {
    value = draw.next(exponents);
    const float rounded = round_to(precision, value);
    value = std::isfinite(rounded) || !std::isfinite(value) ? rounded : std::copysign(1.0F, value);
  }
  return values;
}

Buffer upload_as(ElementType type, const std::vector<float>& values, Device& device) {
  std::vector<unsigned char> bytes(values.size() * bytes_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) store_element(type, bytes.data(), i, values[i]);
  return device.upload(bytes);
}

using Case = std::tuple<Instruction, Precision>;

std::string name_of(const Case& c) {
  const char* const names[] = {"wgmma", "wgmma_a_in_registers", "wgmma_sp", "mma"};
  return std::string(names[static_cast<int>(std::get<0>(c))]) + "__" +
         std::string(to_string(std::get<1>(c)));
}

class TensorCoreTest : public testing::TestWithParam<Case> {};

TEST_P(TensorCoreTest, GivesEveryBitThatTheModelSays) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  if (device.info().compute_capability != 90) GTEST_SKIP() << "needs compute capability 9.0";
  const auto [instruction, precision] = GetParam();
  const ElementType type = storage_type(precision);
  const TensorCore core = tensor_core(precision);
  const bool sparse = instruction == Instruction::wgmma_sp;
  const std::size_t k = tile_k(precision), k_of_b = sparse ? 2 * k : k;
  const int least = std::ilogb(smallest_subnormal(type)),
            largest = std::ilogb(overflow_threshold(type));
  for (const Mix& mix : mixes(least, largest)) {
    Draw draw(mix);
    const std::vector<float> a = inputs(draw, mix.a, kTiles * kTileRows * k, precision);
    const std::vector<float> b = inputs(draw, mix.b, kTiles * kTileColumns * k_of_b, precision);
    std::vector<float> sums(kTiles * kTileRows * kTileColumns);
    for (float& sum : sums) sum = draw.next(mix.sums);
    const Buffer a_memory = upload_as(type, a, device), b_memory = upload_as(type, b, device);
    const Buffer memory = device.upload(sums);
    if (!multiply_tiles(instruction, precision, a_memory.data(), b_memory.data(),
                        memory.as<float>(), kTiles, device.stream()))
      GTEST_SKIP() << "no such instruction";
    std::vector<float> got(sums.size());
    device.download(got.data(), memory.data(), memory.bytes());
    std::vector<float> column(k);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const std::size_t row = i / kTileColumns;
      const std::size_t of_b = row / kTileRows * kTileColumns + i % kTileColumns;
      for (std::size_t at = 0; at < k; ++at)
        column[at] = b[of_b * k_of_b + (sparse ? at / 2 * 4 + at % 2 : at)];
      const float said =
          multiply_accumulate(core, std::span(a).subspan(row * k, k), column, sums[i]);
      if (std::bit_cast<std::uint32_t>(said) == std::bit_cast<std::uint32_t>(got[i])) continue;
      if (wrong++ == 0)
        ADD_FAILURE() << mix.name << ", result " << i << ": " << std::hexfloat << got[i]
                      << ", the model says " << said;
    }
    EXPECT_EQ(wrong, 0U) << mix.name << ", of " << sums.size();
  }
}

INSTANTIATE_TEST_SUITE_P(
    all, TensorCoreTest,
    testing::Combine(testing::Values(Instruction::wgmma, Instruction::wgmma_a_in_registers,
                                     Instruction::wgmma_sp, Instruction::mma),
                     testing::Values(Precision::fp16, Precision::bf16, Precision::tf32,
                                     Precision::fp8_e4m3, Precision::fp8_e5m2)),
    [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace spmmbench::test::tensor_cores
