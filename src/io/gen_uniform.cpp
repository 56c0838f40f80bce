// Every position equally likely: the Erdos-Renyi pattern, or exactly nnz_per_row entries per row.

#include <cmath>

#include "io/generator_util.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

class Uniform final : public Generator {
 public:
  std::string name() const override { return "uniform"; }
  std::string summary() const override { return "every position equally likely"; }
  std::vector<OptionSpec> options() const override {
    return {{"rows", "10000", "number of rows"},
            {"cols", "10000", "number of columns"},
            {"density", "auto", "probability of each entry; 0.001 unless nnz_per_row is given"},
            {"nnz_per_row", "auto", "exactly so many entries in every row, instead of density"},
            kSeedOption};
  }

  Generated generate(const Options& given) const override {
    const OptionReader options(*this, given);
    const std::int64_t rows = options.extent("rows"), cols = options.extent("cols");
    const std::uint64_t seed = options.seed();
    if (options.given("nnz_per_row")) {
      if (options.given("density"))
        throw Error("uniform: expected density or nnz_per_row, got both");
      const std::int64_t count = options.integer("nnz_per_row", 0, cols);
      require_entries(static_cast<double>(rows) * static_cast<double>(count));
      return {pattern_from_rows(rows, cols,
                                [&](std::int64_t r, Columns& out) {
                                  RandomStream random(seed, r);
                                  out = sample_distinct(random, cols, count);
                                }),
              true,
              {}};
    }
    const double density = options.given("density") ? options.number("density", 0, 1) : 0.001;
    require_entries(static_cast<double>(rows) * static_cast<double>(cols) * density);
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
}  // namespace spmmbench

SPMMBENCH_REGISTER_GENERATOR(spmmbench::Uniform);
