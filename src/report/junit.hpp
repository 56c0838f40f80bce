#pragma once
// A comparison as JUnit XML, which CI services show: one test per case; SLOWER and newly wrong ones
// fail, what could not be judged is skipped.

#include <string>

#include "report/comparison.hpp"

namespace spmmbench {

std::string format_junit(const Comparison& comparison);

}  // namespace spmmbench
