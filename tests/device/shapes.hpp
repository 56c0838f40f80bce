#pragma once
// The matrices every kernel must get right: tails, emptiness, concentration, degenerate sizes.

#include <string>
#include <vector>

#include "spmmbench/matrix.hpp"

namespace spmmbench::test {

struct NamedShape {
  std::string name;
  CsrMatrix matrix;  // values U(-1, 1), not yet rounded to any precision
};

// Made once.
const std::vector<NamedShape>& all_shapes();

// Leaves out those with more nonzeros than the environment variable SPMMBENCH_TEST_MAX_NNZ, as
// all_shapes does, for runs under compute-sanitizer.
void leave_out_large(std::vector<NamedShape>& shapes);

}  // namespace spmmbench::test
