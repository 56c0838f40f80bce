#pragma once

#include "run/plan.hpp"

namespace spmmbench {

// Names every case that the run would measure, one a line on stdout, and their number. Reads no
// matrix and writes no file; what an output file has already is left out as --resume would.
void print_dry_run(const RunOptions& options);

}  // namespace spmmbench
