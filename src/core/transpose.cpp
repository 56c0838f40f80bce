#include "core/transpose.hpp"

#include <numeric>

namespace spmmbench {

CsrMatrix transpose(const CsrMatrix& a, std::vector<std::int64_t>* source) {
  CsrMatrix out{a.cols, a.rows, std::vector<std::int64_t>(a.cols + 1, 0), {}, {}, {}, a.scale};
  for (const std::int32_t column : a.col_idx) ++out.row_ptr[column + 1];
  std::partial_sum(out.row_ptr.begin(), out.row_ptr.end(), out.row_ptr.begin());
  out.col_idx.resize(a.nnz());
  out.values.resize(a.nnz());
  out.values64.resize(a.values64.size());
  if (source != nullptr) source->resize(a.nnz());
  std::vector<std::int64_t> next(out.row_ptr.begin(), out.row_ptr.end() - 1);
  for (std::int64_t row = 0; row < a.rows; ++row)
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
      const std::int64_t to = next[a.col_idx[e]]++;
      out.col_idx[to] = static_cast<std::int32_t>(row);
      out.values[to] = a.values[e];
      if (!a.values64.empty()) out.values64[to] = a.values64[e];
      if (source != nullptr) (*source)[to] = e;
    }
  return out;
}

}  // namespace spmmbench
