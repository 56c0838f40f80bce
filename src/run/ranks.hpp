#pragma once
// A run whose products are each divided among several GPUs of this machine: starts a rank for each
// GPU, and keeps the journal.

#include "run/ledger.hpp"
#include "run/options.hpp"

namespace spmmbench {

// A rank that ends or does not answer within the timeout ends the case on all of them; the ranks
// are then started anew for the cases that are left. Throws Interrupted after they have ended.
void run_ranks(const RunOptions& options, Ledger& ledger);

}  // namespace spmmbench
