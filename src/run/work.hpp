#pragma once
// The work of a child process of this program, as one JSON text, which `spmmbench worker` reads
// from its standard input or from a file.

#include <string>

#include "run/options.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

struct Work {
  Cases cases;
  Protocol protocol;
};

std::string describe_work(const Work& work);
Work read_work(const std::string& text);  // throws Error

// The case of `row` alone. The row need not have been measured.
Work case_work(Work work, const ResultRow& row);

}  // namespace spmmbench
