// Block-sparse weights with values: whole blocks are kept or pruned.

#include "io/generator_util.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::gen_block_weights {
namespace {

const auto kRows = extent_option("rows", 4096, "output features");
const auto kCols = extent_option("cols", 4096, "input features");
const auto kBlock = extent_option("block", 64, "height and width of a block; the last may be cut");
const auto kSparsity = real_option("sparsity", "0.9", 0, 1, "fraction of the blocks that are zero");

class BlockWeights final : public Generator {
 public:
  std::string name() const override { return "block_weights"; }
  std::string summary() const override { return "block-sparse weights with values"; }
  std::vector<OptionSpec> options() const override {
    return {kRows, kCols, kBlock, kSparsity, kSeed};
  }

  Generated generate(const Options& options) const override {
    const std::int64_t block = kBlock(options);
    Generated out{random_blocks({kRows(options), kCols(options), block, block},
                                1 - kSparsity(options), 1, kSeed(options)),
                  false,
                  {}};
    draw_values(out.csr, kSeed(options));
    return out;
  }
};

}  // namespace
}  // namespace spmmbench::gen_block_weights

SPMMBENCH_REGISTER_GENERATOR(spmmbench::gen_block_weights::BlockWeights);
