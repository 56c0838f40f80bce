#pragma once
// The CSR cache, .csr: a parsed matrix in a file. Little-endian:
//   136-byte header (CacheHeader in csr_cache.cpp): magic, version, sizes, checksums, SHA-256
//   int64 row_ptr[rows + 1], int32 col_idx[nnz], and fp32 values[nnz] unless it is a pattern

#include <string>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

struct CachedMatrix {
  CsrMatrix csr;         // `values` is empty for a pattern
  bool pattern = false;  // the file holds no values
  std::string sha256;    // matrix_sha256, as computed when the file was written
};

// Throws Error for another format or version, a size that does not match, a checksum that does not
// match, or arrays that are not a CSR.
CachedMatrix read_csr_cache(const std::string& path);

void write_csr_cache(const std::string& path, const CsrMatrix& matrix, bool pattern);

}  // namespace spmmbench
