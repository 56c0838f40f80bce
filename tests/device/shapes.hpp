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

// Those with more nonzeros than the environment variable SPMMBENCH_TEST_MAX_NNZ are left out, for
// runs under compute-sanitizer.
std::vector<NamedShape> all_shapes();

}  // namespace spmmbench::test
