#pragma once

#include <string>
#include <vector>

#include "run/options.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

// The files that a run reads beside its inputs: `config`, B and plug-ins. Some names may be of no
// file.
std::vector<std::string> files_read(const Cases& cases, const std::string& config);

// run_benchmark with this process's arguments. `config` is the file that --config names, or empty.
// `-` as the JSON or CSV file is standard output, where no table is printed then. Throws Error.
ExitCode measure(RunOptions options, const std::string& config);

}  // namespace spmmbench
