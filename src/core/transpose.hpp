#pragma once

#include <cstdint>
#include <vector>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// A^T. `source`, where given: which entry of A each of its entries is.
CsrMatrix transpose(const CsrMatrix& a, std::vector<std::int64_t>* source = nullptr);

}  // namespace spmmbench
