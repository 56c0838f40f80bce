// Dense (or partly filled) blocks: on the diagonal, or at random places of the block grid.

#include <algorithm>

#include "io/generator_util.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::gen_blocks {
namespace {

const auto kRows = extent_option("rows", 8192, "number of rows");
const auto kCols = extent_option("cols", 8192, "number of columns");
const auto kBlockRows = extent_option("block_rows", 16, "height of a block; the last may be cut");
const auto kBlockCols = extent_option("block_cols", 16, "width of a block; the last may be cut");
const auto kLayout = choice_option("layout", "random", {"random", "diagonal"},
                                   "places of the blocks; diagonal: block i of row i only");
const auto kDensity =
    real_option("density", "0.05", 0, 1, "fraction of the blocks kept when the layout is random");
const auto kFill = real_option("fill", "1", 0, 1, "probability of each entry of a kept block");

class Blocks final : public Generator {
 public:
  std::string name() const override { return "blocks"; }
  std::string summary() const override { return "dense blocks, on the diagonal or at random"; }
  std::vector<OptionSpec> options() const override {
    return {kRows, kCols, kBlockRows, kBlockCols, kLayout, kDensity, kFill, kSeed};
  }

  Generated generate(const Options& options) const override {
    const BlockShape shape{kRows(options), kCols(options), kBlockRows(options),
                           kBlockCols(options)};
    const double density = kDensity(options), fill = kFill(options);
    if (kLayout(options) == "random")
      return {random_blocks(shape, density, fill, kSeed(options)), true, {}};
    return {diagonal_blocks(shape, fill, kSeed(options)), true, {}};
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
}  // namespace spmmbench::gen_blocks

SPMMBENCH_REGISTER_GENERATOR(spmmbench::gen_blocks::Blocks);
