#pragma once
// Reverse Cuthill-McKee, which other orderings begin with.

#include "spmmbench/matrix.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench {

// On the graph of graph_of(). Neighbours in it lie close together, so that rows which share columns
// do, wherever they were.
Permutation reverse_cuthill_mckee(const CsrMatrix& matrix);

}  // namespace spmmbench
