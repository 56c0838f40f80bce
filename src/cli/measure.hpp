#pragma once

#include "run/plan.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

// run_benchmark with this process's arguments. `config` is the file that --config names, or empty.
// `-` as the JSON or CSV file is standard output, where no table is printed then. Throws Error.
ExitCode measure(RunOptions options, const std::string& config);

}  // namespace spmmbench
