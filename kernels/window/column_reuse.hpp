#pragma once
// How often a cache that keeps some rows of B has to read one that it has dropped.

#include <cstdint>
#include <vector>

#include "spmmbench/matrix.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench {

// For each row order (empty: natural) the share of the nonzeros whose column is not among the
// last `kept` distinct ones, first uses included. These rows of B come from memory where a cache
// keeps `kept` rows of B. Sampled on four stretches of places, those of all orders at once.
std::vector<double> new_column_shares(const CsrMatrix& matrix,
                                      const std::vector<const Permutation*>& row_orders,
                                      std::int64_t kept);

}  // namespace spmmbench
