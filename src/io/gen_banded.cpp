// Square band matrix: the diagonal, and each other position within the band with one probability.

#include <algorithm>

#include "io/generator_util.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

class Banded final : public Generator {
 public:
  std::string name() const override { return "banded"; }
  std::string summary() const override { return "diagonal plus a randomly filled band"; }
  std::vector<OptionSpec> options() const override {
    return {{"rows", "10000", "number of rows and columns"},
            {"bandwidth", "32", "largest |row - column|"},
            {"fill", "0.5", "probability of each entry of the band off the diagonal"},
            kSeedOption};
  }

  Generated generate(const Options& given) const override {
    const OptionReader options(*this, given);
    const std::int64_t rows = options.extent("rows");
    const std::int64_t bandwidth = options.integer("bandwidth", 0, rows - 1);
    const double fill = options.number("fill", 0, 1);
    require_entries(static_cast<double>(rows) * (1 + 2 * static_cast<double>(bandwidth) * fill));
    const std::uint64_t seed = options.seed();
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
}  // namespace spmmbench

SPMMBENCH_REGISTER_GENERATOR(spmmbench::Banded);
