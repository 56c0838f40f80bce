#pragma once
// The work of a child process of this program: the options of a run as one JSON text, which
// `spmmbench worker` reads from its standard input or from a file.

#include <string>

#include "run/plan.hpp"

namespace spmmbench {

std::string describe_work(const RunOptions& options);  // without after_case
RunOptions read_work(const std::string& text);         // throws Error

// The same run for a child, which prints its rows as lines of JSON and writes no files.
RunOptions child_work(RunOptions options);
// The case of `row` alone for a child. The row need not have been measured.
RunOptions case_work(const RunOptions& options, const ResultRow& row);

}  // namespace spmmbench
