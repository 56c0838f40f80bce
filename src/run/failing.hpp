#pragma once
// The operands and the result of a wrong case, as files that `spmmbench run DIR/a.mtx --b
// DIR/b.npy` and NumPy read.

#include <string>

#include "spmmbench/problem.hpp"
#include "spmmbench/result.hpp"
#include "spmmbench/update.hpp"

namespace spmmbench {

// Writes a.mtx, b.npy, got.npy and want.npy into a folder of the case below `folder`, and returns
// the path; and c.npy, as C was before, where the launch read it. A and B are rounded as for the
// kernel, and A has its own row order. want.npy is the fp64 result, rounded to fp32. Throws Error.
std::string save_failing(const std::string& folder, const ResultRow& row, const Problem& problem,
                         const DenseView& b, const DenseView& c, const Update& update,
                         Device& device);

}  // namespace spmmbench
