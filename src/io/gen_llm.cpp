// The weight matrices of one layer of a language model (rows = output features), pruned.
//
// Qwen2.5-7B: hidden size 3584, FFN 18944, 28 query and 4 key/value heads of 128 (its config.json).
// Llama 3 70B: hidden size 8192, FFN 28672, 64 query and 8 key/value heads of 128 (its
// config.json).

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "io/generator_util.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::gen_llm {
namespace {

// Streams of one seed that must differ.
constexpr std::uint64_t kStreamKeep = 1, kStreamWeight = 2, kStreamRow = 3, kStreamCol = 4,
                        kStreamSample = 5;

// Standard deviation of the logarithm of the scales of rows and columns for `magnitude`. It is
// estimated by hand, not fitted: row lengths of layers of the Deep Learning Matrix Collection that
// were pruned by magnitude vary about so much more than by chance.
constexpr double kScaleSpread = 0.1;

// Two uniform numbers to one normal (Box and Muller 1958).
float normal_at(std::uint64_t seed, std::int64_t row, std::int64_t col) {
  const std::uint64_t bits = hash_position(seed, row, col);
  const double radius = (static_cast<double>(bits >> 32) + 0.5) * 0x1p-32;
  const double angle = static_cast<double>(bits & 0xFFFFFFFFU) * 0x1p-32;
  return static_cast<float>(std::sqrt(-2 * std::log(radius)) *
                            std::cos(2 * std::numbers::pi * angle));
}

std::vector<float> scales(std::int64_t count, std::uint64_t seed) {
  std::vector<float> out(count);
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = static_cast<float>(std::exp(kScaleSpread * normal_at(seed, i, 0)));
  return out;
}

// The matrix of weight(row, col), which is 0 where it is pruned. Asked twice for every position.
template <class Weight>
CsrMatrix matrix_of(std::int64_t rows, std::int64_t cols, Weight weight) {
  CsrMatrix out{rows, cols, std::vector<std::int64_t>(rows + 1), {}, {}};
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t col = 0; col < cols; ++col) out.row_ptr[row + 1] += weight(row, col) != 0;
  for (std::int64_t row = 0; row < rows; ++row) out.row_ptr[row + 1] += out.row_ptr[row];
  out.col_idx.resize(out.nnz());
  out.values.resize(out.nnz());
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t at = out.row_ptr[row];
    for (std::int64_t col = 0; col < cols; ++col)
      if (const float value = weight(row, col); value != 0) {
        out.col_idx[at] = static_cast<std::int32_t>(col);
        out.values[at++] = value;
      }
  }
  return out;
}

CsrMatrix pruned_at_random(std::int64_t rows, std::int64_t cols, double sparsity,
                           std::uint64_t seed) {
  return matrix_of(rows, cols, [=](std::int64_t row, std::int64_t col) {
    const double draw = 0.5 + 0.5 * uniform_at(stream_seed(seed, kStreamKeep), row, col);
    return draw < sparsity ? 0.0F : uniform_at(stream_seed(seed, kStreamWeight), row, col);
  });
}

// Normal weights whose rows and columns differ in scale, cut at one magnitude for all, which is
// found from a sample of the positions.
CsrMatrix pruned_by_magnitude(std::int64_t rows, std::int64_t cols, double sparsity,
                              std::uint64_t seed) {
  const std::vector<float> row_scale = scales(rows, stream_seed(seed, kStreamRow));
  const std::vector<float> col_scale = scales(cols, stream_seed(seed, kStreamCol));
  const std::uint64_t stream = stream_seed(seed, kStreamWeight);
  const auto weight = [&](std::int64_t row, std::int64_t col) {
    return normal_at(stream, row, col) * row_scale[row] * col_scale[col];
  };
  // 2^20 positions give the fraction of zeros to 0.1 % (two standard deviations).
  std::vector<float> sample(std::size_t{1} << 20);
  RandomStream random(seed, kStreamSample);
  for (float& magnitude : sample) {
    const std::int64_t row = random.below(rows);
    magnitude = std::abs(weight(row, random.below(cols)));
  }
  const auto below = static_cast<std::ptrdiff_t>(sparsity * static_cast<double>(sample.size()));
  float threshold = 0;
  if (below > 0) {
    std::nth_element(sample.begin(), sample.begin() + (below - 1), sample.end());
    threshold = sample[below - 1];
  }
  const bool all = below == static_cast<std::ptrdiff_t>(sample.size());
  return matrix_of(rows, cols, [&](std::int64_t row, std::int64_t col) {
    const float value = weight(row, col);
    return all || std::abs(value) <= threshold ? 0.0F : value;
  });
}

// Two of every four neighbours in a row, each pair equally likely.
CsrMatrix pruned_two_of_four(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  constexpr std::array<unsigned, 6> kPairs = {0b0011, 0b0101, 0b1001, 0b0110, 0b1010, 0b1100};
  return matrix_of(rows, cols, [=](std::int64_t row, std::int64_t col) {
    const std::uint64_t draw = hash_position(stream_seed(seed, kStreamKeep), row, col / 4);
    const unsigned pair = kPairs[draw % kPairs.size()];
    return (pair >> (col % 4) & 1U) == 0 ? 0.0F
                                         : uniform_at(stream_seed(seed, kStreamWeight), row, col);
  });
}

const auto kZeros =
    choice_option("zeros", "block", {"block", "random", "magnitude", "2:4"}, "where they are");
const auto kBlock = extent_option("block", 64, "height and width of a block; the last may be cut");
const auto kSparsity = real_option("sparsity", "0.9", 0, 1,
                                   "fraction that is zero, of blocks or of weights; not for 2:4");

class LayerWeights final : public Generator {
 public:
  LayerWeights(std::string model, std::string layer, std::int64_t rows, std::int64_t cols)
      : model_(std::move(model)), layer_(std::move(layer)), rows_(rows), cols_(cols) {}

  std::string name() const override { return model_ + "/" + layer_; }
  std::string summary() const override {
    return fmt::format("{} weights of {}, {} x {}, pruned", layer_, model_, rows_, cols_);
  }
  std::vector<OptionSpec> options() const override { return {kZeros, kBlock, kSparsity, kSeed}; }

  void check(const Options& options) const override {
    const std::string zeros = kZeros(options);
    if (zeros == "2:4" && options.has("sparsity"))
      throw Error(fmt::format("{}: expected no sparsity with zeros=2:4, which is a half", name()));
    if (zeros != "block" && options.has("block"))
      throw Error(fmt::format("{}: expected no block with zeros={}", name(), zeros));
  }

  Generated generate(const Options& options) const override {
    const std::string zeros = kZeros(options);
    const std::int64_t block = kBlock(options);
    const double sparsity = kSparsity(options);
    const std::uint64_t seed = kSeed(options);
    if (zeros == "random") return {pruned_at_random(rows_, cols_, sparsity, seed), false, {}};
    if (zeros == "magnitude") return {pruned_by_magnitude(rows_, cols_, sparsity, seed), false, {}};
    if (zeros == "2:4") return {pruned_two_of_four(rows_, cols_, seed), false, {}};
    Generated out{random_blocks({rows_, cols_, block, block}, 1 - sparsity, 1, seed), false, {}};
    draw_values(out.csr, seed);
    return out;
  }

 private:
  std::string model_, layer_;
  std::int64_t rows_, cols_;
};

}  // namespace
}  // namespace spmmbench::gen_llm

#define SPMMBENCH_REGISTER_LAYER(layer, model, rows, cols) \
  SPMMBENCH_REGISTER_GENERATOR(spmmbench::gen_llm::LayerWeights, model, layer, rows, cols)

SPMMBENCH_REGISTER_LAYER("ffn_gate", "qwen2.5-7b", 18944, 3584);
SPMMBENCH_REGISTER_LAYER("ffn_up", "qwen2.5-7b", 18944, 3584);
SPMMBENCH_REGISTER_LAYER("ffn_down", "qwen2.5-7b", 3584, 18944);
SPMMBENCH_REGISTER_LAYER("attn_q", "qwen2.5-7b", 3584, 3584);
SPMMBENCH_REGISTER_LAYER("attn_k", "qwen2.5-7b", 512, 3584);
SPMMBENCH_REGISTER_LAYER("attn_v", "qwen2.5-7b", 512, 3584);
SPMMBENCH_REGISTER_LAYER("attn_o", "qwen2.5-7b", 3584, 3584);
SPMMBENCH_REGISTER_LAYER("ffn_gate", "llama3-70b", 28672, 8192);
SPMMBENCH_REGISTER_LAYER("ffn_up", "llama3-70b", 28672, 8192);
SPMMBENCH_REGISTER_LAYER("ffn_down", "llama3-70b", 8192, 28672);
SPMMBENCH_REGISTER_LAYER("attn_q", "llama3-70b", 8192, 8192);
SPMMBENCH_REGISTER_LAYER("attn_k", "llama3-70b", 1024, 8192);
SPMMBENCH_REGISTER_LAYER("attn_v", "llama3-70b", 1024, 8192);
SPMMBENCH_REGISTER_LAYER("attn_o", "llama3-70b", 8192, 8192);
