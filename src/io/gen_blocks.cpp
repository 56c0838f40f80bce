// Dense (or partly filled) blocks: on the diagonal, or at random places of the block grid.

#include <algorithm>

#include "io/generator_util.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

class Blocks final : public Generator {
 public:
  std::string name() const override { return "blocks"; }
  std::string summary() const override { return "dense blocks, on the diagonal or at random"; }
  std::vector<OptionSpec> options() const override {
    return {{"rows", "8192", "number of rows"},
            {"cols", "8192", "number of columns"},
            {"block_rows", "16", "height of a block; the last may be cut"},
            {"block_cols", "16", "width of a block; the last may be cut"},
            {"layout", "random", "random, or diagonal (block i of row i only)"},
            {"density", "0.05", "fraction of the blocks kept when the layout is random"},
            {"fill", "1", "probability of each entry of a kept block"},
            kSeedOption};
  }

  Generated generate(const Options& given) const override {
    const OptionReader options(*this, given);
    const BlockShape shape{options.extent("rows"), options.extent("cols"),
                           options.extent("block_rows"), options.extent("block_cols")};
    const double density = options.number("density", 0, 1), fill = options.number("fill", 0, 1);
    if (options.choice("layout", {"random", "diagonal"}) == "random")
      return {random_blocks(shape, density, fill, options.seed()), true, {}};
    return {diagonal_blocks(shape, fill, options.seed()), true, {}};
  }

 private:
  static CsrMatrix diagonal_blocks(const BlockShape& shape, double fill, std::uint64_t seed) {
    require_entries(static_cast<double>(shape.rows) * fill *
                    static_cast<double>(std::min(shape.block_cols, shape.cols)));
    return pattern_from_rows(shape.rows, shape.cols, [&](std::int64_t r, Columns& out) {
      RandomStream random(seed, r);
      const std::int64_t from = r / shape.block_rows * shape.block_cols;
      for (std::int64_t c = from; c < std::min(shape.cols, from + shape.block_cols); ++c)
        if (fill >= 1 || random.chance(fill)) out.push_back(static_cast<std::int32_t>(c));
    });
  }
};

}  // namespace
}  // namespace spmmbench

SPMMBENCH_REGISTER_GENERATOR(spmmbench::Blocks);
