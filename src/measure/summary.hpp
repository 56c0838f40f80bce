#pragma once
// What a row says of its matrix.

#include <string>

#include "spmmbench/matrix.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

// Reads A once. `sha256`: matrix_sha256 of `a`.
MatrixSummary summarise_matrix(const CsrMatrix& a, std::string name, std::string source,
                               std::string sha256);

}  // namespace spmmbench
