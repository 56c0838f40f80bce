#include "measure/summary.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/matrix_memory.hpp"
#include "core/row_lengths.hpp"

namespace spmmbench {
namespace {

constexpr std::int64_t kBlock = 16;  // rows and columns: a tile of A in mma.m16n8k16

// As quantile() of timing/quantiles.hpp, without sorting. `lengths` is not empty.
double quantile_of(std::vector<std::int32_t>& lengths, double q) {
  const double place = q * static_cast<double>(lengths.size() - 1);
  const auto at = lengths.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(lengths.begin(), at, lengths.end());
  const double above = place - std::floor(place);
  if (above == 0) return static_cast<double>(*at);
  const auto next = std::min_element(at + 1, lengths.end());
  return std::lerp(static_cast<double>(*at), static_cast<double>(*next), above);
}

// The share of their entries that are nonzeros, of the blocks that have any; 1 without nonzeros.
double block_fill(const CsrMatrix& a) {
  const std::int64_t bands = (a.rows + kBlock - 1) / kBlock;
  std::int64_t blocks = 0;
#pragma omp parallel reduction(+ : blocks)
  {
    std::vector<bool> seen((a.cols + kBlock - 1) / kBlock);
#pragma omp for schedule(guided)
    for (std::int64_t band = 0; band < bands; ++band) {
      const std::int64_t first = a.row_ptr[band * kBlock];
      const std::int64_t last = a.row_ptr[std::min(a.rows, (band + 1) * kBlock)];
      for (std::int64_t e = first; e < last; ++e) {
        const std::int64_t block = a.col_idx[e] / kBlock;
        blocks += !seen[block];
        seen[block] = true;
      }
      for (std::int64_t e = first; e < last; ++e) seen[a.col_idx[e] / kBlock] = false;
    }
  }
  return blocks == 0 ? 1
                     : static_cast<double>(a.nnz()) / static_cast<double>(blocks * kBlock * kBlock);
}

}  // namespace

MatrixSummary summarise_matrix(const CsrMatrix& a, std::string name, std::string source,
                               std::string sha256) {
  const RowLengths rows = row_lengths(a);
  MatrixSummary out;
  out.name = std::move(name);
  out.source = std::move(source);
  out.sha256 = std::move(sha256);
  out.rows = a.rows;
  out.cols = a.cols;
  out.nnz = a.nnz();
  out.mean_row = rows.mean;
  out.cv_row = rows.variation;
  out.max_row = rows.longest;
  require_host_memory(static_cast<std::size_t>(a.rows) * sizeof(std::int32_t));
  std::vector<std::int32_t> lengths(a.rows);
  for (std::int64_t row = 0; row < a.rows; ++row)
    lengths[row] = static_cast<std::int32_t>(a.row_length(row));
  if (!lengths.empty()) {
    out.q1_row = quantile_of(lengths, 0.25);
    out.median_row = quantile_of(lengths, 0.5);
    out.q3_row = quantile_of(lengths, 0.75);
    out.p99_row = quantile_of(lengths, 0.99);
  }
  out.block_fill = block_fill(a);
  return out;
}

}  // namespace spmmbench
