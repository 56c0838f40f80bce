#pragma once

#include <string>

#include "spmmbench/error.hpp"

namespace spmmbench {

// Measures every ok case of the document `repeat` times, each time in a process of its own and all
// cases before any is repeated, and writes the Calibration to `out`. Throws Error(not_comparable)
// on another device than the document's unless `force`, and Error(not_able_to_tell), writing
// nothing, where runs differ too much (Calibration::require_usable).
ExitCode calibrate(const std::string& document, int repeat, bool force, const std::string& out);

}  // namespace spmmbench
