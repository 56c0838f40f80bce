#pragma once
// What a child process of this program is asked to do: the options of a run as one JSON text, which
// `spmmbench worker` reads from its standard input or from a file.

#include <string>

#include "run/plan.hpp"

namespace spmmbench {

std::string describe_work(const RunOptions& options);  // all but after_case
RunOptions read_work(const std::string& text);         // throws Error

// The same run by a child: it prints its rows as lines of JSON and writes no files.
RunOptions child_work(RunOptions options);
// The case of `row` alone, which need not have been measured, by a child.
RunOptions case_work(const RunOptions& options, const ResultRow& row);

}  // namespace spmmbench
