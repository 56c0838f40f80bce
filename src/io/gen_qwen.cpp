// The weight matrices of one layer of Qwen2.5-7B (hidden size 3584, FFN 18944, 28 query and 4
// key/value heads of 128; rows = output features), pruned in blocks.

#include <fmt/format.h>

#include "io/generator_util.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

class QwenLayer final : public Generator {
 public:
  QwenLayer(std::string layer, std::int64_t rows, std::int64_t cols)
      : layer_(std::move(layer)), rows_(rows), cols_(cols) {}

  std::string name() const override { return "qwen2.5-7b/" + layer_; }
  std::string summary() const override {
    return fmt::format("Qwen2.5-7B {} weights, {} x {}, block-sparse", layer_, rows_, cols_);
  }
  std::vector<OptionSpec> options() const override {
    return {{"block", "64", "height and width of a block; the last may be cut"},
            {"sparsity", "0.9", "fraction of the blocks that are zero"},
            kSeedOption};
  }

  Generated generate(const Options& given) const override {
    const OptionReader options(*this, given);
    const std::int64_t block = options.extent("block");
    Generated out{random_blocks({rows_, cols_, block, block}, 1 - options.number("sparsity", 0, 1),
                                1, options.seed()),
                  false,
                  {}};
    draw_values(out.csr, options.seed());
    return out;
  }

 private:
  std::string layer_;
  std::int64_t rows_, cols_;
};

}  // namespace
}  // namespace spmmbench

SPMMBENCH_REGISTER_GENERATOR(spmmbench::QwenLayer, "ffn_gate", 18944, 3584);
SPMMBENCH_REGISTER_GENERATOR(spmmbench::QwenLayer, "ffn_up", 18944, 3584);
SPMMBENCH_REGISTER_GENERATOR(spmmbench::QwenLayer, "ffn_down", 3584, 18944);
SPMMBENCH_REGISTER_GENERATOR(spmmbench::QwenLayer, "attn_q", 3584, 3584);
SPMMBENCH_REGISTER_GENERATOR(spmmbench::QwenLayer, "attn_k", 512, 3584);
SPMMBENCH_REGISTER_GENERATOR(spmmbench::QwenLayer, "attn_v", 512, 3584);
SPMMBENCH_REGISTER_GENERATOR(spmmbench::QwenLayer, "attn_o", 3584, 3584);
