// Block-sparse attention beside sums in fp64 on the host, and its exact test: where all scores are
// equal, the weights are 1, so sums of whole numbers are exact.

#include "block_attention/block_attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "devices.hpp"
#include "downloaded.hpp"
#include "gpu/upload_values.hpp"

namespace spmmbench::test {
namespace {

constexpr std::int64_t kAttentionHead = 128;

struct AttentionCase {
  std::int64_t tokens;
  int heads, key_heads, block;
  bool of_heads, diagonal;
};

class AttentionPattern {
 public:
  AttentionPattern(const AttentionCase& of, std::mt19937& random)
      : rows_(of.tokens / of.block),
        block_(of.block),
        of_heads_(of.of_heads),
        kept_((of.of_heads ? of.heads : 1) * rows_ * rows_) {
    for (std::int64_t row = 0; row < lists(); ++row) {
      const std::int64_t last = row % rows_;
      for (std::int64_t column = 0; column <= last; ++column)
        kept_[row * rows_ + column] = column == last ? of.diagonal || column == 0 || row % 2 == 0
                                                     : column == 0 || random() % 2 == 0;
    }
  }
  std::int64_t lists() const { return static_cast<std::int64_t>(kept_.size()) / rows_; }
  bool attends(int head, std::int64_t query, std::int64_t key) const {
    const std::int64_t row = (of_heads_ ? head * rows_ : 0) + query / block_;
    return key <= query && kept_[row * rows_ + key / block_];
  }
  void make_lists(std::vector<std::int32_t>& counts, std::vector<std::int32_t>& columns) const {
    columns.assign(kept_.size(), -1);
    for (std::int64_t row = 0; row < lists(); ++row) {
      std::int32_t count = 0;
      for (std::int64_t column = rows_ - 1; column >= 0; --column)
        if (kept_[row * rows_ + column])
          columns[row * rows_ + count++] = static_cast<std::int32_t>(column);
      counts.push_back(count);
    }
  }

 private:
  std::int64_t rows_;
  int block_;
  bool of_heads_;
  std::vector<char> kept_;
};

// [tokens, heads, 128], rounded.
struct HeadValues {
  std::int64_t heads;
  std::vector<float> at;

  template <class Draw>
  HeadValues(std::int64_t tokens, std::int64_t heads, Precision precision, Draw&& draw)
      : heads(heads), at(tokens * heads * kAttentionHead) {
    for (float& value : at) value = round_to(precision, static_cast<float>(draw()));
  }
  const float* vector(std::int64_t token, std::int64_t head) const {
    return at.data() + (token * heads + head) * kAttentionHead;
  }
  Heads on(const Buffer& memory) const {
    return {memory.data(), heads * kAttentionHead, kAttentionHead};
  }
};

struct AttentionOperands {
  HeadValues q, k, v;
};

std::vector<float> attend(const AttentionCase& of, const AttentionOperands& x,
                          const AttentionPattern& pattern, ElementType type, Device& device) {
  std::vector<std::int32_t> counts, columns;
  pattern.make_lists(counts, columns);
  const Buffer q = upload_values(device, x.q.at, type), k = upload_values(device, x.k.at, type),
               v = upload_values(device, x.v.at, type), out = device.allocate(q.bytes()),
               count_memory = device.upload(counts), column_memory = device.upload(columns);
  device.fill_bytes(out.data(), 0xFF, out.bytes());
  spmmbench::attend({.type = type,
                     .tokens = of.tokens,
                     .heads = of.heads,
                     .key_heads = of.key_heads,
                     .scale = 1 / std::sqrt(static_cast<float>(kAttentionHead)),
                     .q = x.q.on(q),
                     .k = x.k.on(k),
                     .v = x.v.on(v),
                     .out = x.q.on(out),
                     .blocks = {of.block, of.of_heads, count_memory.as<std::int32_t>(),
                                column_memory.as<std::int32_t>(), of.tokens / of.block}},
                    device.stream());
  device.synchronize();
  std::vector<float> got;
  visit_element(type, [&](auto element) {
    using Stored = decltype(element);
    for (const auto bits : downloaded<typename Stored::Bits>(device, out.data(), x.q.at.size()))
      got.push_back(static_cast<float>(Stored::decode(bits)));
  });
  return got;
}

// Weights of the keys for one query in fp64, and their sum.
std::vector<double> weights_of(const AttentionCase& of, const AttentionOperands& x,
                               const AttentionPattern& pattern, int head, std::int64_t query,
                               double& sum) {
  std::vector<double> weights(query + 1, -INFINITY);
  const float* const q = x.q.vector(query, head);
  for (std::int64_t key = 0; key <= query; ++key) {
    if (!pattern.attends(head, query, key)) continue;
    const float* const k = x.k.vector(key, head / (of.heads / of.key_heads));
    weights[key] = 0;
    for (std::int64_t i = 0; i < kAttentionHead; ++i) weights[key] += double{q[i]} * k[i];
    weights[key] /= std::sqrt(static_cast<double>(kAttentionHead));
  }
  const double most = *std::max_element(weights.begin(), weights.end());
  sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - most);
  return weights;
}

// Calls check(place in out, sum of weights, sum of weight * value, the same of magnitudes).
template <class Check>
void for_each_output(const AttentionCase& of, const AttentionOperands& x,
                     const AttentionPattern& pattern, Check&& check) {
  for (int head = 0; head < of.heads; ++head)
    for (std::int64_t query = 0; query < of.tokens; ++query) {
      double sum = 0;
      const std::vector<double> weights = weights_of(of, x, pattern, head, query, sum);
      std::vector<double> exact(kAttentionHead), mass(kAttentionHead);
      for (std::int64_t key = 0; key <= query; ++key) {
        const float* const v = x.v.vector(key, head / (of.heads / of.key_heads));
        for (std::int64_t i = 0; i < kAttentionHead && weights[key] > 0; ++i) {
          exact[i] += weights[key] * v[i];
          mass[i] += weights[key] * std::fabs(v[i]);
        }
      }
      for (std::int64_t i = 0; i < kAttentionHead; ++i)
        check((query * of.heads + head) * kAttentionHead + i, sum, exact[i], mass[i]);
    }
}

// Heads in pairs and one left over; an odd number of tiles; patterns of heads; rows without their
// diagonal; more items than multiprocessors.
const std::vector<AttentionCase> kAttentionCases = {
    {64, 1, 1, 64, false, true},   {320, 3, 1, 64, false, true},  {448, 2, 2, 64, true, false},
    {256, 2, 1, 128, false, true}, {512, 2, 2, 128, true, false}, {192, 72, 8, 64, false, true},
};

TEST(BlockAttention, IsWithinFourRoundingsOfTheWeightedValues) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  if (device.info().compute_capability != 90) GTEST_SKIP() << "compute capability 9.0 only";
  for (const Precision precision : {Precision::fp16, Precision::bf16})
    for (const AttentionCase& of : kAttentionCases) {
      std::mt19937 random(static_cast<unsigned>(of.tokens));
      std::normal_distribution<double> normal(0, 1.5);
      const auto draw = [&] { return normal(random); };
      const AttentionOperands x{{of.tokens, of.heads, precision, draw},
                                {of.tokens, of.key_heads, precision, draw},
                                {of.tokens, of.key_heads, precision, draw}};
      const AttentionPattern pattern(of, random);
      const auto got = attend(of, x, pattern, storage_type(precision), device);
      const double unit = precision == Precision::fp16 ? 0x1p-11 : 0x1p-8;
      double worst = 0;
      for_each_output(of, x, pattern, [&](std::int64_t at, double sum, double exact, double mass) {
        const double error = std::fabs(got[at] - exact / sum) / (mass / sum * unit);
        if (!(error <= worst)) worst = error;
      });
      EXPECT_LT(worst, 4) << of.tokens << " tokens, block " << of.block;
    }
}

TEST(BlockAttention, SumsOfUniformScoresAreExact) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  if (device.info().compute_capability != 90) GTEST_SKIP() << "compute capability 9.0 only";
  for (const Precision precision : {Precision::fp16, Precision::bf16})
    for (const AttentionCase& of : kAttentionCases) {
      std::mt19937 random(static_cast<unsigned>(of.tokens));
      const auto whole = [&] { return static_cast<int>(random() % 17) - 8; };
      const AttentionOperands x{{of.tokens, of.heads, precision, [] { return 0; }},
                                {of.tokens, of.key_heads, precision, whole},
                                {of.tokens, of.key_heads, precision, whole}};
      const AttentionPattern pattern(of, random);
      const auto got = attend(of, x, pattern, storage_type(precision), device);
      std::int64_t wrong = 0;
      for_each_output(of, x, pattern, [&](std::int64_t at, double sum, double exact, double) {
        const float inverse = 1.0F / static_cast<float>(sum);
        wrong += got[at] != round_to(precision, static_cast<float>(exact) * inverse);
      });
      EXPECT_EQ(wrong, 0) << of.tokens << " tokens, block " << of.block;
    }
}

}  // namespace
}  // namespace spmmbench::test
