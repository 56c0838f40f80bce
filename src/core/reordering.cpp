#include "spmmbench/reordering.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/numbered.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {

bool names_reordering(const std::string& text) {
  if (text.empty()) return false;
  const Spec spec = Spec::parse(text);
  const Reordering* reordering = Registry<Reordering>::instance().find(spec.name);
  if (reordering != nullptr) check_options(*reordering, spec.options);
  return reordering != nullptr;
}

void validate_permutation(const Permutation& order, std::int64_t rows) {
  if (static_cast<std::int64_t>(order.size()) != rows)
    throw Error(
        fmt::format("permutation: expected {}, got {}", numbered(rows, "row"), order.size()));
  std::vector<bool> seen(order.size(), false);
  for (const std::int32_t row : order) {
    if (row < 0 || row >= rows || seen[row])
      throw Error(fmt::format("permutation: row {} missing or repeated", row));
    seen[row] = true;
  }
}

CsrMatrix permute_rows(const CsrMatrix& matrix, const Permutation& order) {
  CsrMatrix out{matrix.rows, matrix.cols, std::vector<std::int64_t>(matrix.rows + 1), {}, {}};
  for (std::int64_t i = 0; i < matrix.rows; ++i)
    out.row_ptr[i + 1] = out.row_ptr[i] + matrix.row_length(order[i]);
  out.col_idx.resize(matrix.nnz());
  out.values.resize(matrix.nnz());
  out.values64.resize(matrix.values64.size());
#pragma omp parallel for schedule(static, 1024)
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    const std::int64_t from = matrix.row_ptr[order[i]], length = matrix.row_length(order[i]);
    std::copy_n(matrix.col_idx.begin() + from, length, out.col_idx.begin() + out.row_ptr[i]);
    std::copy_n(matrix.values.begin() + from, length, out.values.begin() + out.row_ptr[i]);
    if (!out.values64.empty())
      std::copy_n(matrix.values64.begin() + from, length, out.values64.begin() + out.row_ptr[i]);
  }
  return out;
}

}  // namespace spmmbench
