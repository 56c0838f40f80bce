#pragma once
// The kernel cusparselt without cuSPARSELt's header, which a build may lack: prepared.cu is built
// where it was found, else prepared_stub.cu.

#include <memory>
#include <string>

#include "spmmbench/kernel.hpp"

namespace spmmbench {

// Why the library cannot be used; empty when it can.
std::string cusparselt_missing();

// A in 2:4, M and K multiples of 16, in 16 bits.
std::unique_ptr<Prepared> prepare_cusparselt(const SparseOperand& a, Device& device,
                                             StageTimer& stages);

}  // namespace spmmbench
