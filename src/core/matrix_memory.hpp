#pragma once
// The host memory that matrices take.

#include <cstddef>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

std::size_t memory_bytes(const CsrMatrix& matrix);  // of its arrays

// Throws std::bad_alloc if the host has fewer bytes left. The system promises more memory than
// there is, and kills the process that then uses it.
void require_host_memory(std::size_t bytes);

}  // namespace spmmbench
