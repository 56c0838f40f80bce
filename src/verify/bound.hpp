#pragma once
// The error bound of a kernel, from its KernelInfo. spmmbench/error_bound.hpp has the derivation.

#include "spmmbench/error_bound.hpp"
#include "spmmbench/kernel.hpp"

namespace spmmbench {

// What the kernel may round its sums to.
ElementType sum_type(const KernelInfo& kernel, Precision precision);

ErrorBound error_bound(const KernelInfo& kernel, Precision precision, ElementType c_type);

}  // namespace spmmbench
