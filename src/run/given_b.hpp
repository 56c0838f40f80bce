#pragma once
// A B that was not drawn: of a file, or of a generator.

#include <string>
#include <vector>

#include "run/plan.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench {

// Throws Error where a value of B is NaN, or infinite in the precision of one of the groups.
// `name`: of the file.
void expect_finite(const DenseMatrix& b, const std::string& name,
                   const std::vector<PrecisionGroup>& groups);

}  // namespace spmmbench
