#pragma once

#include "run/plan.hpp"

namespace spmmbench {

// Writes every case that the run would measure to stdout, one on a line, and their number. Reads no
// matrix and writes no file. With --resume, the cases that the output file already has are left
// out.
void print_dry_run(const RunOptions& options);

}  // namespace spmmbench
