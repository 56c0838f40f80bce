#pragma once
// The operands and the result of a wrong case, as files that `spmmbench run DIR/a.mtx --b
// DIR/b.npy` and NumPy read.

#include <string>

#include "spmmbench/problem.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

// Writes a.mtx and b.npy (as the kernel had them: rounded, A in its own row order), got.npy and
// want.npy (the fp64 product, rounded to fp32) into a folder of the case's own below `folder`, and
// returns its path. Throws Error.
std::string save_failing(const std::string& folder, const ResultRow& row, const Problem& problem,
                         const DenseView& b, const DenseView& c, Device& device);

}  // namespace spmmbench
