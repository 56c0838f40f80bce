#include "format/nonzeros.hpp"

#include <algorithm>
#include <numeric>

namespace spmmbench {

CsrMatrix csr_of(std::int64_t rows, std::int64_t cols, std::vector<Nonzero> nonzeros) {
  std::sort(nonzeros.begin(), nonzeros.end(), [](const Nonzero& a, const Nonzero& b) {
    return a.row != b.row ? a.row < b.row : a.col < b.col;
  });
  CsrMatrix out{rows, cols, std::vector<std::int64_t>(rows + 1, 0), {}, {}};
  for (const Nonzero& nonzero : nonzeros) {
    ++out.row_ptr[nonzero.row + 1];
    out.col_idx.push_back(nonzero.col);
    out.values.push_back(nonzero.value);
  }
  std::partial_sum(out.row_ptr.begin(), out.row_ptr.end(), out.row_ptr.begin());
  return out;
}

}  // namespace spmmbench
