// SwiGLU by blocks beside sums in fp64 on the host, and its exact test: where gate's sums are whole
// numbers of at least 32, silu leaves them as they are in fp32.

#include "block_swiglu/block_swiglu.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "devices.hpp"
#include "downloaded.hpp"
#include "gpu/upload_values.hpp"

namespace spmmbench::test {
namespace {

constexpr std::int64_t kTile = SwigluBlocks::kTile, kPair = SwigluBlocks::kPairRows;

struct SwigluCase {
  std::int64_t rows, columns, tokens;
  int zeros;         // of 4 tiles
  bool whole_pairs;  // both tiles of 128 rows, or each for itself
};

// Gate above up, [2 * rows, columns], and the tiles of it that are kept.
class GateUp {
 public:
  template <class Draw>
  GateUp(const SwigluCase& of, Precision precision, std::mt19937& random, Draw&& draw)
      : of_(of), columns_(of.columns / kTile), kept_(2 * of.rows / kTile * columns_) {
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      const bool lower = static_cast<std::int64_t>(i) / columns_ % 2 != 0;
      kept_[i] = of.whole_pairs && lower ? kept_[i - columns_]
                                         : static_cast<int>(random() % 4) >= of.zeros;
    }
    at_.resize(2 * of.rows * of.columns);
    for (std::int64_t row = 0; row < 2 * of.rows; ++row)
      for (std::int64_t k = 0; k < of.columns; ++k)
        if (keeps(row, k / kTile))
          at_[row * of.columns + k] = round_to(precision, static_cast<float>(draw(row < of.rows)));
  }
  const float* row(std::int64_t r) const { return at_.data() + r * of_.columns; }

  // The operands of SwigluBlocks.
  void make_steps(std::vector<float>& tiles, std::vector<std::int32_t>& pairs,
                  std::vector<std::int32_t>& steps) const {
    for (std::int64_t first = 0; first < of_.rows; first += kPair) {
      const auto begin = static_cast<std::int32_t>(steps.size() / 4);
      append_steps(first, tiles, steps);
      const auto middle = static_cast<std::int32_t>(steps.size() / 4);
      append_steps(of_.rows + first, tiles, steps);
      pairs.insert(pairs.end(), {static_cast<std::int32_t>(first), begin, middle,
                                 static_cast<std::int32_t>(steps.size() / 4)});
    }
    if (tiles.empty()) tiles.resize(kTile * kTile);
  }

 private:
  bool keeps(std::int64_t row, std::int64_t column) const {
    return kept_[row / kTile * columns_ + column] != 0;
  }
  void append_steps(std::int64_t first, std::vector<float>& tiles,
                    std::vector<std::int32_t>& steps) const {
    const std::size_t before = steps.size();
    for (std::int64_t column = 0; column < columns_; ++column) {
      if (!keeps(first, column) && !keeps(first + kTile, column)) continue;
      steps.push_back(static_cast<std::int32_t>(column * kTile));
      for (int r = 0; r < 2; ++r) steps.push_back(append_tile(first + r * kTile, column, tiles));
      steps.push_back(0);
    }
    if (steps.size() == before) steps.insert(steps.end(), {0, -1, -1, 0});
  }
  std::int32_t append_tile(std::int64_t first, std::int64_t column,
                           std::vector<float>& tiles) const {
    if (!keeps(first, column)) return -1;
    const std::size_t number = tiles.size() / (kTile * kTile);
    for (std::int64_t r = first; r < first + kTile; ++r)
      tiles.insert(tiles.end(), row(r) + column * kTile, row(r) + (column + 1) * kTile);
    return static_cast<std::int32_t>(number);
  }

  SwigluCase of_;
  std::int64_t columns_;
  std::vector<char> kept_;
  std::vector<float> at_;
};

std::vector<float> multiply(const SwigluCase& of, const GateUp& weights,
                            const std::vector<float>& x, ElementType type, Device& device) {
  std::vector<float> tiles;
  std::vector<std::int32_t> pairs, steps;
  weights.make_steps(tiles, pairs, steps);
  const Buffer x_memory = upload_values(device, x, type),
               tile_memory = upload_values(device, tiles, type), pair_memory = device.upload(pairs),
               step_memory = device.upload(steps),
               y = device.allocate(of.tokens * of.rows * bytes_of(type));
  device.fill_bytes(y.data(), 0xFF, y.bytes());
  multiply_gated(
      {.type = type,
       .rows = of.rows,
       .columns = of.columns,
       .tokens = of.tokens,
       .x = x_memory.data(),
       .y = y.data(),
       .x_distance = of.columns,
       .y_distance = of.rows,
       .blocks = {tile_memory.data(), static_cast<std::int64_t>(tiles.size()) / (kTile * kTile),
                  pair_memory.as<std::int32_t>(), step_memory.as<std::int32_t>()}},
      device.stream());
  device.synchronize();
  std::vector<float> got;
  visit_element(type, [&](auto element) {
    using Stored = decltype(element);
    for (const auto bits : downloaded<typename Stored::Bits>(device, y.data(), of.tokens * of.rows))
      got.push_back(static_cast<float>(Stored::decode(bits)));
  });
  return got;
}

struct Sum {
  double exact = 0, mass = 0;
};
Sum sum_of(const float* row, const float* x, std::int64_t columns) {
  Sum sum;
  for (std::int64_t k = 0; k < columns; ++k) {
    sum.exact += double{row[k]} * x[k];
    sum.mass += std::fabs(double{row[k]} * x[k]);
  }
  return sum;
}

// Calls check(place in y, sums of gate, sums of up).
template <class Check>
void for_each_output(const SwigluCase& of, const GateUp& weights, const std::vector<float>& x,
                     Check&& check) {
  for (std::int64_t token = 0; token < of.tokens; ++token)
    for (std::int64_t row = 0; row < of.rows; ++row) {
      const float* const at = x.data() + token * of.columns;
      check(token * of.rows + row, sum_of(weights.row(row), at, of.columns),
            sum_of(weights.row(of.rows + row), at, of.columns));
    }
}

// Tokens that fill no tile of 192 or of 64; no tiles at all; more steps than a warp has lanes; more
// blocks of y than multiprocessors, in several bands of tokens.
const std::vector<SwigluCase> kSwigluCases = {
    {128, 64, 1, 0, true},     {256, 192, 200, 2, false},   {128, 128, 64, 4, true},
    {384, 2752, 100, 1, true}, {1280, 128, 2500, 2, false}, {256, 320, 385, 3, false},
};

TEST(BlockSwiglu, IsWithinTheBoundOfItsSumsInFp64) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  if (device.info().compute_capability != 90) GTEST_SKIP() << "compute capability 9.0 only";
  for (const Precision precision : {Precision::fp16, Precision::bf16})
    for (const SwigluCase& of : kSwigluCases) {
      std::mt19937 random(static_cast<unsigned>(of.tokens));
      std::normal_distribution<double> normal(0, 1);
      const GateUp weights(of, precision, random, [&](bool) { return 0.3 * normal(random); });
      std::vector<float> x(of.tokens * of.columns);
      for (float& value : x) value = round_to(precision, static_cast<float>(normal(random)));
      const auto got = multiply(of, weights, x, storage_type(precision), device);
      // Tensor cores keep 2^-23 of a sum and its terms in each of its additions; the slope of silu
      // is below 1.1; gating rounds four times in fp32.
      const double unit = precision == Precision::fp16 ? 0x1p-11 : 0x1p-8,
                   of_sum = static_cast<double>(of.columns) * 0x1p-23;
      const double least =
          precision == Precision::fp16 ? 0x1p-25 : 0;  // half of a subnormal's unit
      std::int64_t wrong = 0;
      for_each_output(of, weights, x, [&](std::int64_t at, const Sum& gate, const Sum& up) {
        const double silu = gate.exact / (1 + std::exp(-gate.exact));
        const double from_sums =
            1.1 * of_sum * gate.mass * (std::fabs(up.exact) + of_sum * up.mass) +
            std::fabs(silu) * of_sum * up.mass;
        const double bound =
            (unit + 0x1p-20) * (std::fabs(silu * up.exact) + from_sums) + from_sums + least;
        wrong += !(std::fabs(got[at] - silu * up.exact) <= bound);
      });
      EXPECT_EQ(wrong, 0) << of.rows << " x " << of.columns << ", " << of.tokens << " tokens";
    }
}

TEST(BlockSwiglu, WholeNumbersAreExact) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  if (device.info().compute_capability != 90) GTEST_SKIP() << "compute capability 9.0 only";
  for (const Precision precision : {Precision::fp16, Precision::bf16})
    for (const SwigluCase& of : kSwigluCases) {
      std::mt19937 random(static_cast<unsigned>(of.tokens));
      const GateUp weights(of, precision, random, [&](bool gate) {
        return gate ? 1 : static_cast<int>(random() % 3) - 1;
      });
      std::vector<float> x(of.tokens * of.columns);
      for (float& value : x) value = static_cast<float>(1 + random() % 2);
      const auto got = multiply(of, weights, x, storage_type(precision), device);
      std::int64_t wrong = 0;
      for_each_output(of, weights, x, [&](std::int64_t at, const Sum& gate, const Sum& up) {
        wrong += got[at] != round_to(precision, static_cast<float>(gate.exact * up.exact));
      });
      EXPECT_EQ(wrong, 0) << of.rows << " x " << of.columns << ", " << of.tokens << " tokens";
    }
}

}  // namespace
}  // namespace spmmbench::test
