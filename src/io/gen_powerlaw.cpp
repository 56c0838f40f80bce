// Power-law row lengths with columns chosen uniformly: load imbalance without locality.

#include <algorithm>

#include "io/generator_util.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::gen_powerlaw {
namespace {

const auto kRows = extent_option("rows", 10000, "number of rows");
const auto kCols = auto_extent_option("cols", "number of columns; auto: as many as rows");
const auto kMean = real_option("mean", "16", 1e-6, 2e9, "mean row length");
const auto kExponent =
    real_option("exponent", "2.1", 0.5, 10, "density of row lengths falls as length^-exponent");
const auto kMaxRow = auto_extent_option("max_row", "longest row; auto: a tenth of the columns");

struct Sizes {
  std::int64_t rows, cols, longest;
  PowerLaw lengths;
};

Sizes sizes_of(const Options& options) {
  const std::int64_t rows = kRows(options), cols = kCols(options).value_or(rows);
  const std::int64_t longest = kMaxRow(options).value_or(std::max<std::int64_t>(1, cols / 10));
  return {rows, cols, longest,
          PowerLaw(kMean(options), kExponent(options), static_cast<double>(longest))};
}

class PowerLawRows final : public Generator {
 public:
  std::string name() const override { return "powerlaw"; }
  std::string summary() const override { return "power-law row lengths, uniform columns"; }
  std::vector<OptionSpec> options() const override {
    return {kRows, kCols, kMean, kExponent, kMaxRow, kSeed};
  }

  void check(const Options& options) const override {
    const Sizes sizes = sizes_of(options);
    if (sizes.longest > sizes.cols) throw Error("powerlaw: expected max_row at most cols");
    require_entries(static_cast<double>(sizes.rows) * kMean(options));
  }

  Generated generate(const Options& options) const override {
    const auto [rows, cols, longest, lengths] = sizes_of(options);
    const std::uint64_t seed = kSeed(options);
    return {
        pattern_from_rows(
            rows, cols,
            [&, cols = cols, longest = longest, &lengths = lengths](std::int64_t r, Columns& out) {
              RandomStream random(seed, r);
              const double length = lengths.at(random.unit());
              out = sample_distinct(random, cols, std::min(longest, random.round(length)));
            }),
        true,
        {}};
  }
};

}  // namespace
}  // namespace spmmbench::gen_powerlaw

SPMMBENCH_REGISTER_GENERATOR(spmmbench::gen_powerlaw::PowerLawRows);
