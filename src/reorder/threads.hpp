#pragma once
// How many threads may hold a table of their own.

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

inline std::int64_t csr_bytes(const CsrMatrix& matrix) {
  return 8 * (matrix.rows + 1) + 8 * matrix.nnz();
}

// All threads, or as many as keep their tables, of `bytes` each, within three quarters of the bytes
// of the matrix: many cores must not multiply the memory that a sparse matrix needs.
inline int threads_for_tables(const CsrMatrix& matrix, std::int64_t bytes) {
  const std::int64_t fit = csr_bytes(matrix) * 3 / 4 / std::max<std::int64_t>(bytes, 1);
  return static_cast<int>(std::clamp<std::int64_t>(fit, 1, omp_get_max_threads()));
}

}  // namespace spmmbench
