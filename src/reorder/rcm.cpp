// Reverse Cuthill-McKee (George and Liu 1979): breadth-first from a vertex at the rim of each
// component, neighbours by ascending degree, all reversed. The graph is that of graph_of().

#include "reorder/rcm.hpp"

#include <algorithm>

#include "reorder/compact.hpp"
#include "reorder/graph.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

class BreadthFirst {
 public:
  explicit BreadthFirst(const Graph& graph) : graph_(graph), visit_(graph.size(), 0) {}

  // Appends the component of `root`, level by level. Returns the number of levels; the last one
  // starts at last_level().
  int run(std::int32_t root, std::vector<std::int32_t>& order, bool sort_by_degree) {
    ++stamp_;
    order.assign(1, root);
    visit_[root] = stamp_;
    int levels = 0;
    std::size_t begin = 0;
    while (begin < order.size()) {
      last_level_ = begin;
      const std::size_t end = order.size();
      for (; begin < end; ++begin) {
        const std::size_t first = order.size();
        for (const std::int32_t u : graph_.neighbors(order[begin]))
          if (visit_[u] != stamp_) {
            visit_[u] = stamp_;
            order.push_back(u);
          }
        if (sort_by_degree)
          std::stable_sort(order.begin() + first, order.end(), [&](std::int32_t a, std::int32_t b) {
            return graph_.degree(a) < graph_.degree(b);
          });
      }
      ++levels;
    }
    return levels;
  }
  std::size_t last_level() const { return last_level_; }
  bool visited(std::int32_t v) const { return visit_[v] != 0; }

 private:
  const Graph& graph_;
  std::vector<std::int32_t> visit_;  // number of the last traversal that reached the vertex
  std::int32_t stamp_ = 0;
  std::size_t last_level_ = 0;
};

}  // namespace

Permutation reverse_cuthill_mckee(const CsrMatrix& matrix) {
  constexpr int kRimSearches = 3;  // the eccentricity rarely grows after that
  const Graph graph = graph_of(matrix);
  BreadthFirst search(graph);
  std::vector<std::int32_t> component, trial;
  Permutation order;
  order.reserve(matrix.rows);
  for (const std::int32_t start :
       by_degree(graph.size(), [&](std::int64_t v) { return graph.degree(v); })) {
    if (search.visited(start)) continue;
    std::int32_t root = start;
    int levels = search.run(root, trial, false);
    for (int i = 0; i < kRimSearches && levels > 2; ++i) {
      const std::int32_t rim = *std::min_element(
          trial.begin() + search.last_level(), trial.end(), [&](std::int32_t a, std::int32_t b) {
            return graph.degree(a) != graph.degree(b) ? graph.degree(a) < graph.degree(b) : a < b;
          });
      const int deeper = search.run(rim, trial, false);
      if (deeper <= levels) break;
      levels = deeper;
      root = rim;
    }
    search.run(root, component, true);
    for (const std::int32_t v : component)
      if (v < matrix.rows) order.push_back(v);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

namespace {

class Rcm final : public Reordering {
 public:
  std::string name() const override { return "rcm"; }
  std::string summary() const override {
    return "reverse Cuthill-McKee on A + A^T (bipartite graph when not square)";
  }
  Permutation compute(const CsrMatrix& matrix, const Options& /*options*/) const override {
    return order_compactly(matrix, reverse_cuthill_mckee);
  }
};

SPMMBENCH_REGISTER_REORDERING(Rcm);

}  // namespace
}  // namespace spmmbench
