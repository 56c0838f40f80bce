#pragma once
// Matrix Market files (Boisvert, Pozo, Remington 1996): matrix, coordinate or array; real, double,
// integer or pattern; general, symmetric or skew-symmetric. Complex values, hermitian symmetry and
// vector objects are refused with the reason. One entry per line; comments stand before the size
// line only. Values are rounded to fp32 on reading (overflow gives infinity).

#include <cstddef>
#include <string>
#include <string_view>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

struct MatrixMarketOptions {
  int threads = 0;  // 0: all
  // Bytes of text that one thread parses at a time; cut at line ends.
  std::size_t chunk_bytes = std::size_t{1} << 20;
  bool fp64 = false;             // keep values in fp64 too; those of fp32 are these rounded
  std::size_t memory_bytes = 0;  // refuse what needs more; 0: what the machine has left
};

struct MatrixMarketMatrix {
  CsrMatrix csr;         // `values` is empty for a pattern
  bool pattern = false;  // the field was `pattern`
};

// Throws Error "PATH:LINE: expected ..., got ...". Declared sizes are checked against the file's
// size and the memory before anything is allocated; peak memory stays below the file's size plus
// twice the CSR.
MatrixMarketMatrix read_matrix_market(const std::string& path,
                                      const MatrixMarketOptions& options = {});

// The same for text in memory; `name` stands for the path in messages.
MatrixMarketMatrix parse_matrix_market(std::string_view text, const std::string& name,
                                       const MatrixMarketOptions& options = {});

// Coordinate general: pattern, or real with the shortest digits that read back to the same fp32.
// Compressed when `path` ends in .gz. `values` is not read for a pattern.
void write_matrix_market(const std::string& path, const CsrMatrix& matrix, bool pattern);

}  // namespace spmmbench
