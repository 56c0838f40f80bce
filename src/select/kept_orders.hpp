#pragma once
// Row orders that the cache folder keeps. They take most of the preparation on the host.

#include "spmmbench/reordering.hpp"

namespace spmmbench {

// compute_order, where the cache folder has no such order of a matrix of this structure by this
// program on this host with as many threads. One that it has is checked to be a permutation; its
// stage is marked as kept and has the time that computing it took.
Permutation kept_order(const CsrMatrix& matrix, const Spec& order, StageTimer& cost);

}  // namespace spmmbench
