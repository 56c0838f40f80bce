#pragma once

#include <string>
#include <vector>

#include "run/options.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

// The whole run: inputs x reorderings x precisions x N x kernels, journalled, reported. Tables go
// to stdout, status to stderr. Returns interrupted, or else the first that applies of wrong_result,
// some_failed, usage (an input could not be read) and ok. Throws Error before the first measurement
// when the run is impossible.
ExitCode run_benchmark(const RunOptions& options, const std::vector<std::string>& argv);

}  // namespace spmmbench
