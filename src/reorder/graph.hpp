#pragma once
// The undirected graph behind a matrix, for orderings that are defined on graphs.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// No self loops, every edge in both directions, neighbours ascending.
struct Graph {
  std::vector<std::int64_t> ptr = {0};
  std::vector<std::int32_t> adjacent;

  std::int64_t size() const { return static_cast<std::int64_t>(ptr.size()) - 1; }
  std::int64_t degree(std::int64_t v) const { return ptr[v + 1] - ptr[v]; }
  std::span<const std::int32_t> neighbors(std::int64_t v) const {
    return std::span(adjacent).subspan(ptr[v], degree(v));
  }
};

// Vertex i is row i, and vertex rows + j is column j. So a traversal brings rows with common
// columns together.
Graph bipartite_graph(const CsrMatrix& matrix);

// For a square matrix the graph of A + A^T, in which vertex i is row i and column i; otherwise the
// bipartite graph.
Graph graph_of(const CsrMatrix& matrix);

// Pattern of A^T as ptr and ascending row indices per column.
Graph transpose_pattern(const CsrMatrix& matrix);

// The pattern without the columns that have less than two entries. Without values.
CsrMatrix shared_columns(const CsrMatrix& matrix);

// Vertices by ascending degree, equal ones ascending.
template <class Degree>
std::vector<std::int32_t> by_degree(std::int64_t vertices, Degree&& degree) {
  std::int64_t largest = 0;
  for (std::int64_t v = 0; v < vertices; ++v) largest = std::max<std::int64_t>(largest, degree(v));
  std::vector<std::int64_t> start(largest + 2, 0);
  for (std::int64_t v = 0; v < vertices; ++v) ++start[degree(v) + 1];
  for (std::int64_t d = 0; d <= largest; ++d) start[d + 1] += start[d];
  std::vector<std::int32_t> order(vertices);
  for (std::int64_t v = 0; v < vertices; ++v)
    order[start[degree(v)]++] = static_cast<std::int32_t>(v);
  return order;
}

}  // namespace spmmbench
