// ESMM's block-wise patterned operands. Each (32 rows, 8 columns) tile of A keeps whole columns,
// each (8 rows, 32 columns) tile of B whole rows; each of the 8 bits of a tile is set with
// probability ones/8 of the pattern text, independently of all others.

#include <algorithm>

#include "io/generator_util.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

constexpr std::int64_t kTileSide = 32;  // rows of A or columns of B that share a pattern
constexpr std::int64_t kTileDepth = 8;  // k-indices of one pattern

// Whether index k survives in the tiles of 32-wide stripe `side`: one of the 8 bits of its tile.
bool survives(std::uint64_t seed, std::int64_t side, std::int64_t k, int ones) {
  return static_cast<int>(hash_position(seed, side, k) >> 61) < ones;
}

int count_ones(const OptionReader& options, std::string_view key) {
  const std::string key_used = options.given(key) ? std::string(key) : "pattern";
  const std::string text = options.text(key_used);
  if (text.size() != kTileDepth || text.find_first_not_of("01") != std::string::npos)
    throw Error("option " + key_used + "=" + text + ": expected 8 digits of 0 and 1");
  return static_cast<int>(std::count(text.begin(), text.end(), '1'));
}

class Esmm final : public Generator {
 public:
  std::string name() const override { return "esmm"; }
  std::string summary() const override { return "ESMM's block-wise patterned A and B"; }
  std::vector<OptionSpec> options() const override {
    return {
        {"size", "4096", "m, k and n where they are not given"},
        {"m", "auto", "rows of A and C"},
        {"k", "auto", "columns of A, rows of B"},
        {"n", "auto", "columns of B and C"},
        {"pattern", "10000000", "8 binary digits for both operands; its ones / 8 is the density"},
        {"pattern_a", "auto", "A's own pattern"},
        {"pattern_b", "auto", "B's own pattern"},
        {"seed", "1", "seed of A; B uses seed + 1"}};
  }

  Generated generate(const Options& given) const override {
    const OptionReader options(*this, given);
    const auto extent = [&](std::string_view key) {
      return options.extent(options.given(key) ? key : "size");
    };
    const std::int64_t m = extent("m"), k = extent("k"), n = extent("n");
    const int ones_a = count_ones(options, "pattern_a"), ones_b = count_ones(options, "pattern_b");
    require_entries(static_cast<double>(m) * static_cast<double>(k) * ones_a / kTileDepth +
                    static_cast<double>(k) * static_cast<double>(n));
    const std::uint64_t seed_a = options.seed(), seed_b = seed_a + 1;

    Generated out;
    out.pattern = false;
    out.csr = pattern_from_rows(m, k, [&](std::int64_t r, Columns& columns) {
      for (std::int64_t c = 0; c < k; ++c)
        if (survives(seed_a, r / kTileSide, c, ones_a))
          columns.push_back(static_cast<std::int32_t>(c));
    });
    draw_values(out.csr, seed_a);
    out.b = {k, n, std::vector<float>(static_cast<std::size_t>(k * n))};
    const std::uint64_t values_b = stream_seed(seed_b, kStreamB);
#pragma omp parallel for schedule(static)
    for (std::int64_t r = 0; r < k; ++r)
      for (std::int64_t c = 0; c < n; ++c)
        if (survives(seed_b, c / kTileSide, r, ones_b))
          out.b.values[r * n + c] = uniform_at(values_b, r, c);
    return out;
  }
};

}  // namespace
}  // namespace spmmbench

SPMMBENCH_REGISTER_GENERATOR(spmmbench::Esmm);
