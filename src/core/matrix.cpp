#include "spmmbench/matrix.hpp"

#include <fmt/format.h>

#include "core/numbered.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

void validate(const CsrMatrix& m) {
  if (m.rows < 0 || m.cols < 0 || m.row_ptr.size() != static_cast<std::size_t>(m.rows) + 1)
    throw Error(fmt::format("CSR: expected {}, got {}", numbered(m.rows + 1, "row pointer"),
                            m.row_ptr.size()));
  if (m.row_ptr.front() != 0)
    throw Error(fmt::format("CSR: expected row pointers from 0, got {}", m.row_ptr.front()));
  for (std::int64_t row = 0; row < m.rows; ++row)
    if (m.row_ptr[row + 1] < m.row_ptr[row])
      throw Error(fmt::format("CSR: row_ptr falls at row {}", row));
  const auto nnz = static_cast<std::size_t>(m.nnz());
  if (m.col_idx.size() != nnz || m.values.size() != nnz)
    throw Error(fmt::format("CSR: row_ptr says {}, got {} and {}",
                            numbered(nnz, "entry", "entries"), numbered(m.col_idx.size(), "column"),
                            numbered(m.values.size(), "value")));
  if (!m.values64.empty() && m.values64.size() != nnz)
    throw Error(fmt::format("CSR: row_ptr says {}, got {} in fp64",
                            numbered(nnz, "entry", "entries"),
                            numbered(m.values64.size(), "value")));
  for (std::int64_t row = 0; row < m.rows; ++row) {
    std::int64_t previous = -1;
    for (std::int64_t e = m.row_ptr[row]; e < m.row_ptr[row + 1]; ++e) {
      const std::int64_t col = m.col_idx[e];
      if (col == previous && col < m.cols)
        throw Error(fmt::format("CSR: row {}: column {} appears twice", row, col));
      if (col <= previous || col >= m.cols)
        throw Error(
            fmt::format("CSR: row {}: column {} after {}: expected ascending columns below {}", row,
                        col, previous, m.cols));
      previous = col;
    }
  }
}

}  // namespace spmmbench
