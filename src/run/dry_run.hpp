#pragma once

#include "run/options.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

// Writes every case that the run would measure to stdout, one on a line, and their number. With
// --resume, the cases that the output file already has are left out. Of a batch it tells how much
// memory it takes, for inputs that are read. Leaves no file. Refuses what the run would refuse, as
// far as that shows without a device and without reading large files whole: throws Error for what
// keeps the run from beginning; an input that it would leave out is named on stderr, and the result
// is then ExitCode::usage.
ExitCode print_dry_run(const RunOptions& options);

}  // namespace spmmbench
