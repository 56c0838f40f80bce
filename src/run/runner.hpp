#pragma once

#include "run/plan.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

// The whole run: inputs x reorderings x precisions x N x kernels, journalled, reported. Tables go
// to stdout, status to stderr. Returns wrong_result, some_failed, usage (an input could not be
// read) or ok, in that order of gravity, or interrupted. Throws Error before the first measurement
// for what makes the run impossible.
ExitCode run_benchmark(const RunOptions& options, const std::vector<std::string>& argv);

}  // namespace spmmbench
