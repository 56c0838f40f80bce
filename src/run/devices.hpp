#pragma once
// A run over several GPUs of this machine. Every GPU has one child process at a time, which
// measures all cases of one matrix. This process hands out the matrices and keeps the journal.

#include "run/ledger.hpp"
#include "run/plan.hpp"

namespace spmmbench {

// Each input, in order, goes to the next device that is free. When interrupted, throws Interrupted
// after the children have ended and their rows were recorded.
void run_on_devices(const RunOptions& options, const std::vector<PrecisionGroup>& groups,
                    Ledger& ledger);

}  // namespace spmmbench
