#pragma once
// The error bound of a kernel, from what it says of its arithmetic: spmmbench/error_bound.hpp
// derives it.

#include "spmmbench/error_bound.hpp"
#include "spmmbench/kernel.hpp"

namespace spmmbench {

ErrorBound error_bound(const KernelInfo& kernel, Precision precision, ElementType c_type);

}  // namespace spmmbench
