#include "verify/exact.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <vector>

#include "spmmbench/random.hpp"

namespace spmmbench {

std::optional<Lattice> make_lattice(std::uint64_t seed, std::int64_t longest_row,
                                    Precision precision, int sum_bits) {
  // 11 less than sums have: more than fp16 and tf32 have, so that a kernel which rounds fp32 to
  // these is found out, and in fp64 more than fp32 has.
  const int most_bits = precision == Precision::fp64 ? 42 : 13;
  constexpr std::int64_t kFewest = 2, kMostNarrow = 7;
  const std::int64_t largest_sum = (std::int64_t{1} << sum_bits) - 1;  // in units
  const std::int64_t product = largest_sum / std::max<std::int64_t>(longest_row, 1);
  if (product == 0) return std::nullopt;
  const std::int64_t most_wide =
      (std::int64_t{1} << std::min(significand_bits(precision), most_bits)) - 1;
  const std::int64_t narrow =
      product < kFewest * kFewest ? 1 : std::clamp(product / most_wide, kFewest, kMostNarrow);
  const std::int64_t wide = std::min(most_wide, product / narrow);
  const auto unit = [](std::int64_t top) {
    return 1.0 / static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(top) + 1));
  };
  return Lattice{.seed = seed,
                 .wide = wide,
                 .narrow = narrow,
                 .wide_unit = unit(wide),
                 .narrow_unit = unit(narrow)};
}

CsrMatrix with_lattice_values(const CsrMatrix& a, std::span<const std::int32_t> row_ids,
                              const Lattice& lattice) {
  CsrMatrix out{a.rows,
                a.cols,
                a.row_ptr,
                a.col_idx,
                std::vector<float>(a.values.size()),
                std::vector<double>(a.values64.size())};
#pragma omp parallel for schedule(dynamic, 1024)
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const std::int64_t id = row_ids.empty() ? row : row_ids[row];
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
      const double value = lattice.a(id, a.col_idx[e]);
      out.values[e] = static_cast<float>(value);
      if (!out.values64.empty()) out.values64[e] = value;
    }
  }
  return out;
}

DenseMatrix with_lattice_values(const DenseMatrix& b, const Lattice& lattice) {
  DenseMatrix out{b.rows, b.cols, std::vector<float>(b.values.size()),
                  std::vector<double>(b.values64.size())};
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < b.rows; ++i)
    for (std::int64_t j = 0; j < b.cols; ++j) {
      const std::int64_t at = i * b.cols + j;
      const double value = b.value(at) == 0 ? 0 : lattice.b(i, j);
      out.values[at] = static_cast<float>(value);
      if (!out.values64.empty()) out.values64[at] = value;
    }
  return out;
}

bool only_zero_products(const CsrMatrix& a, const DenseMatrix& b) {
  std::vector<bool> zero(b.rows);
  for (std::int64_t row = 0; row < b.rows; ++row) {
    bool all = true;
    for (std::int64_t j = 0; j < b.cols; ++j) all = all && b.value(row * b.cols + j) == 0;
    zero[row] = all;
  }
  return std::all_of(a.col_idx.begin(), a.col_idx.end(),
                     [&](std::int32_t col) { return zero[col]; });
}

namespace {

// Columns of A of which no two share a row: those that come first in the order of `rank` in each of
// their rows. A column that is not usable is none of them.
std::vector<char> apart(const CsrMatrix& a, const std::vector<char>& usable,
                        const std::function<std::uint64_t(std::int64_t)>& rank) {
  std::vector<std::uint64_t> ranks(a.cols);
#pragma omp parallel for schedule(static)
  for (std::int64_t col = 0; col < a.cols; ++col) ranks[col] = usable[col] != 0 ? rank(col) : 0;
  std::vector<char> first = usable;
#pragma omp parallel for schedule(dynamic, 1024)
  for (std::int64_t row = 0; row < a.rows; ++row) {
    std::uint64_t best = 0;
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      best = std::max(best, ranks[a.col_idx[e]]);
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      if (ranks[a.col_idx[e]] != best) {
#pragma omp atomic write
        first[a.col_idx[e]] = 0;
      }
  }
  return first;
}

}  // namespace

std::optional<DenseMatrix> with_one_product(const CsrMatrix& a, std::int64_t n,
                                            std::uint64_t seed) {
  // Choices of columns. Later columns of B have the nonzeros of earlier ones, and other signs.
  constexpr std::int64_t kChoices = 32;
  std::vector<char> usable(a.cols, 1);
  const double least = smallest_normal(a.values64.empty() ? ElementType::f32 : ElementType::f64);
  for (std::int64_t e = 0; e < a.nnz(); ++e) {
    const double magnitude = std::abs(a.value(e));
    if (!std::isfinite(magnitude)) return std::nullopt;
    // Sums may flush what is smaller to zero.
    if (magnitude > 0 && magnitude < least) usable[a.col_idx[e]] = 0;
  }
  DenseMatrix b{a.cols, n, std::vector<float>(static_cast<std::size_t>(a.cols * n))};
  for (std::int64_t choice = 0; choice < std::min(n, kChoices); ++choice) {
    const auto chosen = apart(a, usable, [&](std::int64_t col) {
      return hash_position(seed, col, choice) | 1;  // never 0, the rank of what is not usable
    });
#pragma omp parallel for schedule(static)
    for (std::int64_t k = 0; k < a.cols; ++k)
      for (std::int64_t j = choice; chosen[k] != 0 && j < n; j += kChoices)
        b.values[k * n + j] = (hash_position(seed, k, n + j) & 1) != 0 ? -1.0F : 1.0F;
  }
  return b;
}

}  // namespace spmmbench
