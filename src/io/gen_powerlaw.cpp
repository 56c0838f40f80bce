// Power-law row lengths with columns chosen uniformly: load imbalance without locality.

#include <algorithm>

#include "io/generator_util.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

class PowerLawRows final : public Generator {
 public:
  std::string name() const override { return "powerlaw"; }
  std::string summary() const override { return "power-law row lengths, uniform columns"; }
  std::vector<OptionSpec> options() const override {
    return {{"rows", "10000", "number of rows"},
            {"cols", "auto", "number of columns; as many as rows unless given"},
            {"mean", "16", "mean row length"},
            {"exponent", "2.1", "density of row lengths falls as length^-exponent"},
            {"max_row", "auto", "longest row; a tenth of the columns unless given"},
            kSeedOption};
  }

  Generated generate(const Options& given) const override {
    const OptionReader options(*this, given);
    const std::int64_t rows = options.extent("rows");
    const std::int64_t cols = options.given("cols") ? options.extent("cols") : rows;
    const std::int64_t longest = options.given("max_row") ? options.integer("max_row", 1, cols)
                                                          : std::max<std::int64_t>(1, cols / 10);
    const double mean = options.number("mean", 1e-6, 2e9);
    require_entries(static_cast<double>(rows) * mean);
    const PowerLaw lengths(mean, options.number("exponent", 0.5, 10), static_cast<double>(longest));
    const std::uint64_t seed = options.seed();
    return {pattern_from_rows(rows, cols,
                              [&](std::int64_t r, Columns& out) {
                                RandomStream random(seed, r);
                                const double length = lengths.at(random.unit());
                                out = sample_distinct(random, cols,
                                                      std::min(longest, random.round(length)));
                              }),
            true,
            {}};
  }
};

}  // namespace
}  // namespace spmmbench

SPMMBENCH_REGISTER_GENERATOR(spmmbench::PowerLawRows);
