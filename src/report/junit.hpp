#pragma once
// A comparison as JUnit XML, which CI services show: one test per geometric mean and per case.
// Regressions are failures (SLOWER, newly wrong, and lost coverage unless allowed), NOT ABLE TO
// TELL is an error, UNCLEAR and allowed losses are skipped.

#include <string>

#include "report/comparison.hpp"

namespace spmmbench {

std::string format_junit(const Comparison& comparison);

}  // namespace spmmbench
