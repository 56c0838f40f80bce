#pragma once
// A of an input, with the B that a file or a generator gives.

#include <string>
#include <vector>

#include "io/input.hpp"
#include "run/options.hpp"
#include "run/plan.hpp"

namespace spmmbench {

// Throws Error where A and B do not fit each other or the sizes that were given, and where B has a
// value that is not finite in the precision of one of the groups.
LoadedInput load_operands(const std::string& input, const Cases& cases,
                          const std::vector<PrecisionGroup>& groups);

}  // namespace spmmbench
