// Block-sparse weights with values: whole blocks are kept or pruned.

#include "io/generator_util.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

class BlockWeights final : public Generator {
 public:
  std::string name() const override { return "block_weights"; }
  std::string summary() const override { return "block-sparse weights with values"; }
  std::vector<OptionSpec> options() const override {
    return {{"rows", "4096", "output features"},
            {"cols", "4096", "input features"},
            {"block", "64", "height and width of a block; the last may be cut"},
            {"sparsity", "0.9", "fraction of the blocks that are zero"},
            kSeedOption};
  }

  Generated generate(const Options& given) const override {
    const OptionReader options(*this, given);
    const std::int64_t block = options.extent("block");
    Generated out{random_blocks({options.extent("rows"), options.extent("cols"), block, block},
                                1 - options.number("sparsity", 0, 1), 1, options.seed()),
                  false,
                  {}};
    draw_values(out.csr, options.seed());
    return out;
  }
};

}  // namespace
}  // namespace spmmbench

SPMMBENCH_REGISTER_GENERATOR(spmmbench::BlockWeights);
