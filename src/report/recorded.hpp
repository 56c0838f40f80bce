#pragma once
// What a run has recorded, whether it has ended or not.

#include <string>

#include "spmmbench/result.hpp"

namespace spmmbench {

// Reads a result document, or the journal of a run that is at work or was cut off: of a case that
// was repeated the last row counts, and the speed-ups are those among the rows there are so far.
// Throws Error for what is neither.
ResultDocument read_recorded(const std::string& path);

}  // namespace spmmbench
