#pragma once
// The memory that `inspect` needs, so that it refuses a matrix before it fills the host.

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// The most that `inspect` takes at once with every format and order, the matrix itself aside.
double inspection_bytes(const CsrMatrix& matrix);

}  // namespace spmmbench
