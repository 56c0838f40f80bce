#pragma once
// The error bound of a kernel, derived from its arithmetic (never chosen).
//
// fp32 FMA: a sum of k rounded products in any order errs by at most gamma_k (|A||B|)_ij, gamma_k ~
// k u, u = 2^-24 (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1).
//
// Tensor cores: products of 16-bit and tf32 inputs are exact; before they are added, the products
// and the accumulator are aligned to the largest of them and truncated to 24 bits, an error of at
// most 2^-23 of that largest term for each of them (Fasi, Higham, Mikaitis, Pranesh, PeerJ CS
// 7:e330, 2021). One nonzero brings at most two truncations, its own and the accumulator's (a
// product with 0 changes nothing), and no term exceeds (|A||B|)_ij: hence 2 * 2^-23 = 4u per
// nonzero.
//
// A 16-bit C adds its own rounding. Inputs add nothing: they are rounded before any kernel, and the
// reference, sees them.

#include "spmmbench/kernel.hpp"
#include "spmmbench/verdict.hpp"

namespace spmmbench {

ErrorBound error_bound(const KernelInfo& kernel, Precision precision, ElementType c_type);

// The bound on one element: `abs_sum` = (|A||B|)_ij, `reference` = Cref_ij, `k` = nonzeros of row
// i.
double bound_at(const ErrorBound& bound, double abs_sum, double reference, double k);

}  // namespace spmmbench
