#include "esmm/format.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::esmm {
namespace {

// `kept` bits are set, in `tiles` bytes.
FormatStats make_stats(const OperandPattern& p, std::int64_t nnz, std::int64_t kept,
                       std::int64_t tiles) {
  FormatStats s;
  s.name = "esmm_pattern";
  s.index_bytes = p.strips * p.words * static_cast<std::int64_t>(sizeof(p.bits[0]));
  s.stored = kept * OperandPattern::kStrip;
  s.bytes = s.index_bytes + s.stored * static_cast<std::int64_t>(sizeof(float));
  s.tiles = tiles;
  s.windows = p.strips;
  s.fill = kept == 0 ? 1 : static_cast<double>(nnz) / static_cast<double>(s.stored);
  s.nnz_per_tile = s.tiles == 0 ? 0 : static_cast<double>(nnz) / static_cast<double>(s.tiles);
  s.nnz_per_window = p.strips == 0 ? 0 : static_cast<double>(nnz) / static_cast<double>(p.strips);
  const double indices = static_cast<double>(p.strips) * static_cast<double>(p.length);
  constexpr std::int64_t kTileBits = 8;  // a tile is a byte of the pattern
  const std::int64_t tiles_of_strip = (p.length + kTileBits - 1) / kTileBits;
  const double tiles_all = static_cast<double>(p.strips) * static_cast<double>(tiles_of_strip);
  s.extra["set_bit_fraction"] = indices == 0 ? 0 : static_cast<double>(kept) / indices;
  s.extra["nonzero_tile_fraction"] = tiles_all == 0 ? 0 : static_cast<double>(s.tiles) / tiles_all;
  return s;
}

// Word `word` of group `group`: the union over its strips.
std::uint32_t group_word(const OperandPattern& p, std::int64_t group, int size, std::int64_t word) {
  std::uint32_t all = 0;
  const std::int64_t end = std::min(p.strips, (group + 1) * size);
  for (std::int64_t strip = group * size; strip < end; ++strip) {
    all |= p.bits[static_cast<std::size_t>(strip * p.words + word)];
  }
  return all;
}

std::int64_t groups(const OperandPattern& p, int size) { return (p.strips + size - 1) / size; }

// needed[k] counts the groups that have index word * 32 + k.
std::array<std::int64_t, 32> count_bits(const OperandPattern& p, int size, std::int64_t word) {
  std::array<std::int64_t, 32> counts{};
  for (std::int64_t g = 0; g < groups(p, size); ++g) {
    for (std::uint32_t left = group_word(p, g, size, word); left != 0; left &= left - 1) {
      ++counts[static_cast<std::size_t>(std::countr_zero(left))];
    }
  }
  return counts;
}

using Histogram = std::array<std::int64_t, 256>;

// How often each value of pattern byte `byte` of the word occurs.
std::array<Histogram, 4> count_bytes(const OperandPattern& p, int size, std::int64_t word) {
  std::array<Histogram, 4> counts{};
  for (std::int64_t g = 0; g < groups(p, size); ++g) {
    const std::uint32_t all = group_word(p, g, size, word);
    for (std::size_t byte = 0; byte < 4; ++byte) ++counts[byte][all >> (8 * byte) & 0xFF];
  }
  return counts;
}

// Pairs (x of a, y of b) with x & y == 0, from b summed over all subsets of each mask.
std::int64_t disjoint_pairs(const Histogram& a, Histogram b) {
  for (std::size_t bit = 1; bit < b.size(); bit *= 2) {
    for (std::size_t mask = 0; mask < b.size(); ++mask) {
      if ((mask & bit) != 0) b[mask] += b[mask ^ bit];
    }
  }
  std::int64_t pairs = 0;
  for (std::size_t x = 0; x < a.size(); ++x) pairs += a[x] * b[~x & 0xFF];
  return pairs;
}

}  // namespace

OperandPattern OperandPattern::of_shape(std::int64_t outer, std::int64_t length) {
  OperandPattern p;
  p.length = length;
  p.strips = (outer + kStrip - 1) / kStrip;
  p.words = (length + kChunk - 1) / kChunk * (kChunk / 32);
  return p;
}

std::int64_t OperandPattern::set_bits() const {
  std::int64_t count = 0;
  for (const std::uint32_t word : bits) count += std::popcount(word);
  return count;
}

std::int64_t OperandPattern::set_bytes() const {
  std::int64_t count = 0;
  for (std::uint32_t word : bits) {
    for (; word != 0; word >>= 8) count += (word & 0xFF) != 0 ? 1 : 0;
  }
  return count;
}

FormatStats OperandPattern::stats(std::int64_t nnz) const {
  return make_stats(*this, nnz, set_bits(), set_bytes());
}

FormatStats OperandPattern::stats_of_rows(const CsrMatrix& a) {
  const OperandPattern shape = OperandPattern::of_shape(a.rows, a.cols);
  std::int64_t kept = 0, tiles = 0;
  std::vector<std::uint8_t> strip(static_cast<std::size_t>((a.cols + kByte - 1) / kByte), 0);
  for (std::int64_t first = 0; first < a.rows; first += kStrip) {
    const std::int64_t begin = a.row_ptr[first], end = a.row_ptr[std::min(first + kStrip, a.rows)];
    for (std::int64_t i = begin; i < end; ++i) {
      std::uint8_t& byte = strip[a.col_idx[i] / kByte];
      const int bit = a.values[i] != 0 ? 1 << a.col_idx[i] % kByte : 0;
      kept += (byte & bit) != bit;
      tiles += byte == 0 && bit != 0;
      byte |= static_cast<std::uint8_t>(bit);
    }
    for (std::int64_t i = begin; i < end; ++i) strip[a.col_idx[i] / kByte] = 0;
  }
  return make_stats(shape, a.nnz(), kept, tiles);
}

double needed_fraction(const OperandPattern& a, const OperandPattern& b, int group_a, int group_b,
                       int step) {
  if (a.length != b.length) throw Error("operand patterns differ in their inner dimension");
  const double pairs =
      static_cast<double>(groups(a, group_a)) * static_cast<double>(groups(b, group_b));
  const std::int64_t steps = (a.length + step - 1) / step;
  if (pairs == 0 || steps == 0) return 0;
  double needed = 0;
  for (std::int64_t word = 0; word < a.words; ++word) {
    if (step == 1) {
      const auto in_a = count_bits(a, group_a, word);
      const auto in_b = count_bits(b, group_b, word);
      for (std::size_t k = 0; k < 32; ++k) {
        needed += static_cast<double>(in_a[k]) * static_cast<double>(in_b[k]);
      }
    } else {
      const auto in_a = count_bytes(a, group_a, word);
      const auto in_b = count_bytes(b, group_b, word);
      for (std::size_t byte = 0; byte < 4; ++byte) {
        needed += pairs - static_cast<double>(disjoint_pairs(in_a[byte], in_b[byte]));
      }
    }
  }
  return needed / (pairs * static_cast<double>(steps));
}

namespace {

class EsmmPatternFormat final : public Format {
 public:
  std::string name() const override { return "esmm_pattern"; }
  std::string summary() const override {
    return "ESMM operand pattern: a bit per 32 rows x 1 column of a dense-stored A";
  }
  FormatStats analyze(const CsrMatrix& matrix, const Options& /*options*/) const override {
    return OperandPattern::stats_of_rows(matrix);
  }
};

}  // namespace

SPMMBENCH_REGISTER_FORMAT(EsmmPatternFormat);

}  // namespace spmmbench::esmm
