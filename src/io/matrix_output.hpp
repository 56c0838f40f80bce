#pragma once
// Matrices to files, the format told by the extension.

#include <string>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// Dense output of more than this is refused.
inline constexpr double kLargestDenseBytes = 4e9;

// For use before long work. Throws Error unless `path` ends in .mtx, .mtx.gz, .csr, .npy or .bin
// and can be written.
void require_output(const std::string& path);

// Writes under a temporary name and renames. `pattern`: .mtx and .csr get no values. Dense formats
// get the values in every case, and zeros elsewhere.
void write_matrix(const std::string& path, const CsrMatrix& matrix, bool pattern);

}  // namespace spmmbench
