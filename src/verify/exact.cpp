#include "verify/exact.hpp"

#include <algorithm>
#include <vector>

#include "spmmbench/random.hpp"

namespace spmmbench {

std::optional<int> lattice_top(std::int64_t longest_row, ElementType sums) {
  const auto largest_sum = static_cast<std::int64_t>(1 / unit_roundoff(sums)) - 1;  // by 1/64
  for (const int top : {7, 6, 5, 4, 3, 2, 1})
    if (longest_row <= largest_sum / (top * top)) return top;
  return std::nullopt;
}

CsrMatrix with_lattice_values(const CsrMatrix& a, std::span<const std::int32_t> row_ids,
                              std::uint64_t seed, int top) {
  CsrMatrix out{a.rows, a.cols, a.row_ptr, a.col_idx, std::vector<float>(a.values.size())};
#pragma omp parallel for schedule(dynamic, 1024)
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const std::int64_t id = row_ids.empty() ? row : row_ids[row];
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      out.values[e] = lattice_at(seed, id, a.col_idx[e], top);
  }
  return out;
}

DenseMatrix with_lattice_values(const DenseMatrix& b, std::uint64_t seed, int top) {
  DenseMatrix out{b.rows, b.cols, std::vector<float>(b.values.size())};
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < b.rows; ++i)
    for (std::int64_t j = 0; j < b.cols; ++j) {
      const std::int64_t at = i * b.cols + j;
      out.values[at] = b.values[at] == 0 ? 0 : lattice_at(seed, i, j, top);
    }
  return out;
}

bool only_zero_products(const CsrMatrix& a, const DenseMatrix& b) {
  std::vector<bool> zero(b.rows);
  for (std::int64_t row = 0; row < b.rows; ++row) {
    const auto begin = b.values.begin() + row * b.cols;
    zero[row] = std::all_of(begin, begin + b.cols, [](float value) { return value == 0; });
  }
  return std::all_of(a.col_idx.begin(), a.col_idx.end(),
                     [&](std::int32_t col) { return zero[col]; });
}

}  // namespace spmmbench
