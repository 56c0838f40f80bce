#pragma once
// Kernels that are prepared from CSR of A^T. A run with --transpose has that: it is the input, so
// that nothing need be transposed.

#include <algorithm>

#include "spmmbench/kernel.hpp"

namespace spmmbench {

inline constexpr const char* kReadsTransposed = "reads_transposed";  // in KernelInfo::flags

inline bool reads_transposed(const KernelInfo& info) {
  return std::find(info.flags.begin(), info.flags.end(), kReadsTransposed) != info.flags.end();
}

}  // namespace spmmbench
