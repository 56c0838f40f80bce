#pragma once
// Stages 3 and 4 of the RSH-SpMM ordering: an order made from the neighbours, and its improvements.

#include "reorder/rsh_neighbors.hpp"
#include "reorder/similarity.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench {

// Minimum spanning forest of the neighbour graph on 1 - similarity (Kruskal), visited depth first,
// the most similar child first. Trees follow one another by their smallest row.
Permutation spanning_forest_order(const RshNeighbors& neighbors, std::int64_t rows);

// 2-opt: reverses runs of rows inside stretches of two windows while that lowers the cost of
// neighbours. Then the same again, with the stretches moved by one window.
void two_opt(const WeightedJaccard& jaccard, int window_rows, Permutation& order);

// Moves the rows whose similarity to both neighbours is below `threshold`: behind the most similar
// row that stays, or to the end where there is none.
void relocate_isolated(const WeightedJaccard& jaccard, const RshNeighbors& neighbors,
                       double threshold, Permutation& order);

}  // namespace spmmbench
