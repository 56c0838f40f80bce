// Every position equally likely: the Erdos-Renyi pattern, or exactly nnz_per_row entries per row.

#include <cmath>

#include "io/generator_util.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::gen_uniform {
namespace {

const auto kRows = extent_option("rows", 10000, "number of rows");
const auto kCols = extent_option("cols", 10000, "number of columns");
const auto kDensity = auto_real_option(
    "density", 0, 1, "probability of each entry; auto: 0.001 unless nnz_per_row is given");
const auto kNnzPerRow = auto_integer_option<std::int64_t>(
    "nnz_per_row", 0, kMaxExtent, "entries in every row, at most cols, instead of density");
constexpr double kDefaultDensity = 0.001;

class Uniform final : public Generator {
 public:
  std::string name() const override { return "uniform"; }
  std::string summary() const override { return "every position equally likely"; }
  std::vector<OptionSpec> options() const override {
    return {kRows, kCols, kDensity, kNnzPerRow, kSeed};
  }

  void check(const Options& options) const override {
    const auto rows = static_cast<double>(kRows(options)),
               cols = static_cast<double>(kCols(options));
    const auto per_row = kNnzPerRow(options);
    if (per_row && kDensity(options))
      throw Error("uniform: expected density or nnz_per_row, got both");
    if (per_row && static_cast<double>(*per_row) > cols)
      throw Error("uniform: expected nnz_per_row at most cols");
    require_entries(rows * (per_row ? static_cast<double>(*per_row)
                                    : cols * kDensity(options).value_or(kDefaultDensity)));
  }

  Generated generate(const Options& options) const override {
    const std::int64_t rows = kRows(options), cols = kCols(options);
    const std::uint64_t seed = kSeed(options);
    if (const auto count = kNnzPerRow(options))
      return {pattern_from_rows(rows, cols,
                                [&](std::int64_t r, Columns& out) {
                                  RandomStream random(seed, r);
                                  out = sample_distinct(random, cols, *count);
                                }),
              true,
              {}};
    const double density = kDensity(options).value_or(kDefaultDensity);
    return {pattern_from_rows(rows, cols,
                              [&](std::int64_t r, Columns& out) {
                                RandomStream random(seed, r);
                                bernoulli_row(random, cols, density, out);
                              }),
            true,
            {}};
  }

 private:
  // The gaps between entries are geometric, so the work is the number of entries.
  static void bernoulli_row(RandomStream& random, std::int64_t cols, double density, Columns& out) {
    if (density <= 0) return;
    const double scale = 1 / std::log1p(-density);  // -0 at density 1: every gap is 0
    double col = -1;
    while (true) {
      col += 1 + std::floor(std::log1p(-random.unit()) * scale);
      if (col >= static_cast<double>(cols)) return;
      out.push_back(static_cast<std::int32_t>(col));
    }
  }
};

}  // namespace
}  // namespace spmmbench::gen_uniform

SPMMBENCH_REGISTER_GENERATOR(spmmbench::gen_uniform::Uniform);
