#pragma once
// An end for a process that may wait for what never answers, such as a GPU that waits for another.

#include <string>

namespace spmmbench {

// After this many seconds the process writes `line` to stderr and ends with ExitCode::some_failed,
// whatever its threads do, unless it has called cancel_deadline() or set another one.
void set_deadline(double seconds, const std::string& line);
void cancel_deadline();

}  // namespace spmmbench
