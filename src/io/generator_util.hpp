#pragma once
// Shared by the generators: declarations of options, counter-based random streams, and the assembly
// of CSR patterns. All are pure functions of their arguments, so results are the same for any
// number of threads.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "spmmbench/error.hpp"
#include "spmmbench/generator.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/option.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {

inline constexpr std::int64_t kMaxExtent = std::numeric_limits<std::int32_t>::max();
inline const auto kSeed = seed_option("seed of every random choice");
// A number of rows, columns or grid points.
inline Option<std::int64_t> extent_option(std::string name, std::int64_t value, std::string help) {
  return integer_option<std::int64_t>(std::move(name), value, 1, kMaxExtent, std::move(help));
}
inline Option<std::optional<std::int64_t>> auto_extent_option(std::string name, std::string help) {
  return auto_integer_option<std::int64_t>(std::move(name), 1, kMaxExtent, std::move(help));
}

// Random numbers of one row, vertex or edge: element `id` of the family `seed`.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t id) : seed_(seed), id_(id) {}
  std::uint64_t bits() { return hash_position(seed_, id_, counter_++); }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  bool chance(double probability) { return unit() < probability; }
  // Uniform in [0, count), count < 2^32: the multiply-shift reduction of 32 random bits.
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(((bits() >> 32) * static_cast<std::uint64_t>(count)) >> 32);
  }
  // A whole number with this mean: the floor, or one more with the fraction's probability.
  std::int64_t round(double mean) { return static_cast<std::int64_t>(mean + unit()); }

 private:
  std::uint64_t seed_, id_, counter_ = 0;
};

using Columns = std::vector<std::int32_t>;

// `count` distinct numbers of [0, range), ascending, every set equally likely.
Columns sample_distinct(RandomStream& random, std::int64_t range, std::int64_t count);

// 0 .. count-1 in random order.
std::vector<std::int32_t> random_permutation(std::int64_t count, std::uint64_t seed);

// A power law x^-exponent on [low, high] with the given mean: `low` is solved for. For degrees and
// community sizes; x is real, callers round it.
class PowerLaw {
 public:
  PowerLaw(double mean, double exponent, double high);  // throws Error when no low gives the mean
  double at(double u) const;                            // the u-quantile, u in [0, 1)

 private:
  double low_, high_, exponent_;
};

// The matrix does not fit in the available memory.
class LacksMemory : public Error {
 public:
  using Error::Error;
};

// What an entry takes while a pattern is made. Of rows: twice its column and its value, or the
// columns of some rows in room for twice as many, and the joined ones. Of edges: their columns too.
inline constexpr double kBytesOfRows = 12, kBytesOfEdges = 16;

// Throws Error when a matrix of about this many entries is too large for any host, and LacksMemory
// when it is too large for this one.
void require_entries(double expected, double bytes_of_entry = kBytesOfRows);

// The pattern whose row r has the columns that `fill(r, columns)` appends, in any order. Repeated
// ones are merged. `fill` is called once per row, from several threads.
CsrMatrix pattern_from_rows(std::int64_t rows, std::int64_t cols,
                            const std::function<void(std::int64_t, Columns&)>& fill);

struct Edge {
  std::int32_t row, col;
};

// Pattern of these edges, repeats merged; `symmetric` adds (col, row) for every (row, col).
CsrMatrix pattern_from_edges(std::int64_t rows, std::int64_t cols, std::vector<Edge> edges,
                             bool symmetric);

// The union of a square pattern and its transpose.
CsrMatrix symmetrized(CsrMatrix matrix);

// Vertex v of a square pattern becomes new_index[v], rows and columns alike.
CsrMatrix relabel(const CsrMatrix& matrix, const std::vector<std::int32_t>& new_index);

// Breadth-first order of a symmetric pattern, component after component, neighbours by ascending
// degree (Cuthill and McKee): result[v] = position of v.
std::vector<std::int32_t> breadth_first_positions(const CsrMatrix& graph);

// Each entry's value: U(-1, 1) by its position.
void draw_values(CsrMatrix& matrix, std::uint64_t seed);

// Blocks of block_rows x block_cols (ragged at the edges) of which round(kept_fraction * all) are
// kept, the same number per block row up to one; in a kept block each entry is present with
// probability `fill`.
struct BlockShape {
  std::int64_t rows, cols, block_rows, block_cols;
};
CsrMatrix random_blocks(const BlockShape& shape, double kept_fraction, double fill,
                        std::uint64_t seed);

}  // namespace spmmbench
