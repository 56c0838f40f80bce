// ESMM's block-wise patterned operands. Each (32 rows, 8 columns) tile of A keeps whole columns,
// each (8 rows, 32 columns) tile of B whole rows; each of the 8 bits of a tile is set with
// probability ones/8 of the pattern text, independently of all others.

#include <algorithm>

#include "io/generator_util.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::gen_esmm {
namespace {

constexpr std::int64_t kTileSide = 32;  // rows of A or columns of B that share a pattern
constexpr std::int64_t kTileDepth = 8;  // k-indices of one pattern

// Whether index k survives in the tiles of 32-wide stripe `side`: one of the 8 bits of its tile.
bool survives(std::uint64_t seed, std::int64_t side, std::int64_t k, int ones) {
  return static_cast<int>(hash_position(seed, side, k) >> 61) < ones;
}

bool is_pattern(const std::string& text) {
  return text.size() == kTileDepth && text.find_first_not_of("01") == std::string::npos;
}

const TextForm kPatternForm = {"8 digits of 0 and 1", is_pattern, {"11110000", "00000000"}};
const auto kSize = extent_option("size", 4096, "m, k and n where they are not given");
const auto kM = auto_extent_option("m", "rows of A and C; auto: size");
const auto kK = auto_extent_option("k", "columns of A, rows of B; auto: size");
const auto kN = auto_extent_option("n", "columns of B and C; auto: size");
const auto kPattern = text_option("pattern", "10000000", kPatternForm,
                                  "bits of both operands; the ones / 8 are the density");
const auto kPatternA =
    auto_text_option("pattern_a", kPatternForm, "A's own pattern; auto: pattern");
const auto kPatternB =
    auto_text_option("pattern_b", kPatternForm, "B's own pattern; auto: pattern");
const auto kSeedOfA = seed_option("seed of A; B uses seed + 1");

struct Operands {
  std::int64_t m, k, n;
  int ones_a, ones_b;
};

Operands operands_of(const Options& options) {
  const auto ones = [&](const auto& own) {
    const std::string bits = own(options).value_or(kPattern(options));
    return static_cast<int>(std::count(bits.begin(), bits.end(), '1'));
  };
  const std::int64_t size = kSize(options);
  return {kM(options).value_or(size), kK(options).value_or(size), kN(options).value_or(size),
          ones(kPatternA), ones(kPatternB)};
}

class Esmm final : public Generator {
 public:
  std::string name() const override { return "esmm"; }
  std::string summary() const override { return "ESMM's block-wise patterned A and B"; }
  std::vector<OptionSpec> options() const override {
    return {kSize, kM, kK, kN, kPattern, kPatternA, kPatternB, kSeedOfA};
  }

  void check(const Options& options) const override {
    const Operands sizes = operands_of(options);
    const auto m = static_cast<double>(sizes.m), k = static_cast<double>(sizes.k),
               n = static_cast<double>(sizes.n);
    require_entries(m * k * sizes.ones_a / kTileDepth + k * n);
  }

  std::optional<std::int64_t> columns_of_b(const Options& options) const override {
    return operands_of(options).n;
  }

  Generated generate(const Options& options) const override {
    const Operands sizes = operands_of(options);
    const std::int64_t m = sizes.m, k = sizes.k, n = sizes.n;
    const std::uint64_t seed_a = kSeedOfA(options), seed_b = seed_a + 1;

    Generated out;
    out.pattern = false;
    out.csr = pattern_from_rows(m, k, [&](std::int64_t r, Columns& columns) {
      for (std::int64_t c = 0; c < k; ++c)
        if (survives(seed_a, r / kTileSide, c, sizes.ones_a))
          columns.push_back(static_cast<std::int32_t>(c));
    });
    draw_values(out.csr, seed_a);
    out.b = {k, n, std::vector<float>(static_cast<std::size_t>(k * n))};
    const std::uint64_t values_b = stream_seed(seed_b, kStreamB);
#pragma omp parallel for schedule(static)
    for (std::int64_t r = 0; r < k; ++r)
      for (std::int64_t c = 0; c < n; ++c)
        if (survives(seed_b, c / kTileSide, r, sizes.ones_b))
          out.b.values[r * n + c] = uniform_at(values_b, r, c);
    return out;
  }
};

}  // namespace
}  // namespace spmmbench::gen_esmm

SPMMBENCH_REGISTER_GENERATOR(spmmbench::gen_esmm::Esmm);
