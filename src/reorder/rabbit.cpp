// Rabbit order (Arai et al., IPDPS 2016): vertices in ascending degree join the neighbouring
// community with the largest modularity gain; rows follow the dendrogram depth first. The graph is
// that of graph_of(). The code is sequential: the merges depend on each other, and the order must
// not depend on the number of threads.

#include <cstdint>
#include <memory>
#include <vector>

#include "reorder/compact.hpp"
#include "reorder/graph.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::rabbit {
namespace {

constexpr std::int32_t kNone = -1;

class Communities {
 public:
  // A column with one entry would join its row before anything else and leave no edge. So it is not
  // a vertex of the bipartite graph, but it counts in the degree and strength of its row.
  explicit Communities(const CsrMatrix& matrix)
      : matrix_(matrix),
        graph_(matrix.rows == matrix.cols ? graph_of(matrix)
                                          : bipartite_graph(shared_columns(matrix))),
        nodes_(graph_.size()),
        total_(static_cast<double>(matrix.rows == matrix.cols ? graph_.ptr.back()
                                                              : 2 * matrix.nnz())) {
    for (std::int64_t v = 0; v < graph_.size(); ++v) {
      nodes_[v].parent = static_cast<std::int32_t>(v);
      nodes_[v].strength = static_cast<double>(2 * degree(v) - graph_.degree(v));
    }
  }

  void merge_all() {
    for (const std::int32_t u :
         by_degree(graph_.size(), [&](std::int64_t v) { return degree(v); })) {
      aggregate(u);
      const std::int32_t v = best_neighbor(u);
      if (v != kNone) {
        if (comes_after(u, v)) keep_edges(u, v);
        nodes_[u].parent = v;
        nodes_[v].strength += nodes_[u].strength;
        nodes_[u].sibling = nodes_[v].first_child;
        nodes_[v].first_child = u;
      }
      for (const std::int32_t root : touched_) nodes_[root].weight_to = 0;
      touched_.clear();
    }
  }

  // Every community's vertices, depth first.
  template <class Visit>
  void traverse(Visit&& visit) const {
    std::vector<std::int32_t> stack;
    for (std::int64_t v = 0; v < graph_.size(); ++v) {
      if (nodes_[v].parent != v) continue;
      stack.push_back(static_cast<std::int32_t>(v));
      while (!stack.empty()) {
        const std::int32_t u = stack.back();
        stack.pop_back();
        visit(u);
        for (std::int32_t c = nodes_[u].first_child; c != kNone; c = nodes_[c].sibling)
          stack.push_back(c);
      }
    }
  }

 private:
  struct Node {
    double strength = 0;          // sum of the community's degrees
    std::int32_t parent = kNone;  // its own number in the root of a community
    std::int32_t first_child = kNone;
    union {
      float weight_to = 0;   // in a root: of its edges to the community that is merged now
      std::int32_t sibling;  // merged
    };
    std::int32_t edges = kNone;  // merged: place in lists_, until the parent takes them
  };
  struct Edge {
    std::int32_t to;  // kNone ends a list
    float weight;
  };

  std::int64_t degree(std::int64_t v) const {
    return matrix_.rows != matrix_.cols && v < matrix_.rows ? matrix_.row_length(v)
                                                            : graph_.degree(v);
  }

  std::int32_t root_of(std::int32_t v) {
    while (nodes_[v].parent != v) v = nodes_[v].parent = nodes_[nodes_[v].parent].parent;
    return v;
  }

  void add_edge(std::int32_t u, std::int32_t to, float weight) {
    const std::int32_t root = root_of(to);
    if (root == u) return;
    if (nodes_[root].weight_to == 0) touched_.push_back(root);
    nodes_[root].weight_to += weight;
  }

  // Sums up the edges of u's community for each neighbouring community: u's own edges, and those
  // that its children kept.
  void aggregate(std::int32_t u) {
    for (const std::int32_t v : graph_.neighbors(u)) add_edge(u, v, 1);
    for (std::int32_t c = nodes_[u].first_child; c != kNone; c = nodes_[c].sibling) {
      const std::int32_t list = nodes_[c].edges;
      if (list == kNone) continue;
      for (const Edge* edge = lists_[list].get(); edge->to != kNone; ++edge)
        add_edge(u, edge->to, edge->weight);
      lists_[list].reset();
      free_lists_.push_back(list);
    }
  }

  // Whether v has yet to join a neighbour. Only then does it read its children's edges.
  bool comes_after(std::int32_t u, std::int32_t v) const {
    return degree(u) != degree(v) ? degree(u) < degree(v) : u < v;
  }

  // Keeps u's edges for v, which takes u in; all but those to v itself.
  void keep_edges(std::int32_t u, std::int32_t v) {
    if (touched_.size() == 1) return;
    if (free_lists_.empty()) {
      free_lists_.push_back(static_cast<std::int32_t>(lists_.size()));
      lists_.emplace_back();
    }
    nodes_[u].edges = free_lists_.back();
    free_lists_.pop_back();
    lists_[nodes_[u].edges] = std::make_unique_for_overwrite<Edge[]>(touched_.size());
    Edge* edge = lists_[nodes_[u].edges].get();
    for (const std::int32_t root : touched_)
      if (root != v) *edge++ = {root, nodes_[root].weight_to};
    *edge = {kNone, 0};
  }

  std::int32_t best_neighbor(std::int32_t u) const {
    double best = 0;
    std::int32_t best_v = kNone;
    for (const std::int32_t v : touched_) {
      const double gain = nodes_[v].weight_to / total_ -
                          nodes_[u].strength * nodes_[v].strength / (total_ * total_);
      if (gain > best) best = gain, best_v = v;
    }
    return best_v;
  }

  const CsrMatrix& matrix_;
  const Graph graph_;
  std::vector<Node> nodes_;
  std::vector<std::unique_ptr<Edge[]>> lists_;
  std::vector<std::int32_t> free_lists_;  // places in lists_
  std::vector<std::int32_t> touched_;
  double total_;  // twice the edges
};

class Rabbit final : public Reordering {
 public:
  std::string name() const override { return "rabbit"; }
  std::string summary() const override {
    return "Rabbit order: communities by modularity, on A + A^T (bipartite when not square)";
  }
  Permutation compute(const CsrMatrix& matrix, const Options& /*options*/) const override {
    return order_compactly(matrix, [](const CsrMatrix& pattern) {
      Communities communities(pattern);
      communities.merge_all();
      Permutation order;
      order.reserve(pattern.rows);
      communities.traverse([&](std::int32_t v) {
        if (v < pattern.rows) order.push_back(v);
      });
      return order;
    });
  }
};

SPMMBENCH_REGISTER_REORDERING(Rabbit);

}  // namespace
}  // namespace spmmbench::rabbit
