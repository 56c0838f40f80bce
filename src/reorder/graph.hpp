#pragma once
// The undirected graph behind a matrix, for orderings that are defined on graphs.

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

// Square: A + A^T, vertex = row = column. Otherwise the bipartite graph: vertices [0, rows) are
// rows and rows + j is column j, so that a traversal brings rows with common columns together.
Graph graph_of(const CsrMatrix& matrix);

// Pattern of A^T as ptr and ascending row indices per column.
Graph transpose_pattern(const CsrMatrix& matrix);

// Vertices by ascending degree, equal ones ascending.
std::vector<std::int32_t> by_degree(const Graph& graph);

}  // namespace spmmbench
