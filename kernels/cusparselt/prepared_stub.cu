// A build without cusparseLt.h.

#include "cusparselt/prepared.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

std::string cusparselt_missing() {
  return "cuSPARSELt not found: the program was built without its header";
}

std::unique_ptr<Prepared> prepare_cusparselt(const SparseOperand&, Device&, StageTimer&) {
  throw Unsupported(cusparselt_missing());
}

}  // namespace spmmbench
