#pragma once
// Matrices to files, the format told by the extension.

#include <string>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// Dense output of more than this is refused.
inline constexpr double kLargestDenseBytes = 4.0 * (1 << 30);

// Throws Error that lists the extensions unless `path` has one of them: .mtx, .mtx.gz, .csr, .npy,
// .bin.
void require_output_format(const std::string& path);

// Writes under a temporary name and renames. `pattern`: .mtx and .csr get no values. Dense formats
// get the values in every case, and zeros elsewhere.
void write_matrix(const std::string& path, const CsrMatrix& matrix, bool pattern);

}  // namespace spmmbench
