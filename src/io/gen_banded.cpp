// Square band matrix: the diagonal, and each other position within the band with one probability.

#include <algorithm>

#include "io/generator_util.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::gen_banded {
namespace {

const auto kRows = extent_option("rows", 10000, "number of rows and columns");
const auto kBandwidth = integer_option<std::int64_t>("bandwidth", 32, 0, kMaxExtent - 1,
                                                     "largest |row - column|, less than rows");
const auto kFill =
    real_option("fill", "0.5", 0, 1, "probability of each entry of the band off the diagonal");

class Banded final : public Generator {
 public:
  std::string name() const override { return "banded"; }
  std::string summary() const override { return "diagonal plus a randomly filled band"; }
  std::vector<OptionSpec> options() const override { return {kRows, kBandwidth, kFill, kSeed}; }

  void check(const Options& options) const override {
    const auto rows = static_cast<double>(kRows(options)),
               bandwidth = static_cast<double>(kBandwidth(options));
    if (bandwidth >= rows) throw Error("banded: expected a bandwidth smaller than rows");
    require_entries(rows * (1 + 2 * bandwidth * kFill(options)));
  }

  Generated generate(const Options& options) const override {
    const std::int64_t rows = kRows(options), bandwidth = kBandwidth(options);
    const double fill = kFill(options);
    const std::uint64_t seed = kSeed(options);
    return {pattern_from_rows(rows, rows,
                              [&](std::int64_t r, Columns& out) {
                                RandomStream random(seed, r);
                                const std::int64_t last = std::min(rows - 1, r + bandwidth);
                                for (std::int64_t c = std::max<std::int64_t>(0, r - bandwidth);
                                     c <= last; ++c)
                                  if (c == r || random.chance(fill))
                                    out.push_back(static_cast<std::int32_t>(c));
                              }),
            true,
            {}};
  }
};

}  // namespace
}  // namespace spmmbench::gen_banded

SPMMBENCH_REGISTER_GENERATOR(spmmbench::gen_banded::Banded);
