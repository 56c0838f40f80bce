#pragma once
// Stages 3 and 4 of the RSH-SpMM ordering, each from one order to a better one.

#include "reorder/rsh_neighbors.hpp"
#include "reorder/similarity.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench {

// Minimum spanning forest of the neighbour graph on 1 - similarity (Kruskal), visited depth first,
// the most similar child first; trees by their smallest row.
Permutation spanning_forest_order(const RshNeighbors& neighbors, std::int64_t rows);

// 2-opt: reverses runs inside stretches of two windows while the adjacent cost falls; then once
// more with the stretches moved by one window.
void two_opt(const WeightedJaccard& jaccard, int window_rows, Permutation& order);

// Rows whose similarity to both rows beside them is below `threshold` move behind their most
// similar row that stays, or to the end where there is none.
void relocate_isolated(const WeightedJaccard& jaccard, const RshNeighbors& neighbors,
                       double threshold, Permutation& order);

}  // namespace spmmbench
