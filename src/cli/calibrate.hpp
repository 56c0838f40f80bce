#pragma once

#include <string>

#include "spmmbench/error.hpp"

namespace spmmbench {

// Measures all ok cases of the document once, in a process of its own, and repeats that `repeat`
// times. Writes the Calibration to `out`. Where Ctrl-C or a case that fails ends it early, it
// writes the repetitions that are whole if they are at least three, and throws an Error that says
// so. Throws Error(not_comparable) on another device than that of the document unless `force`, and
// where a matrix has changed since.
// Throws Error(not_able_to_tell) and writes nothing where runs differ too much
// (Calibration::require_usable).
ExitCode calibrate(const std::string& document, int repeat, bool force, const std::string& out);

}  // namespace spmmbench
