// Rabbit order (Arai et al., IPDPS 2016): vertices in ascending degree join the neighbouring
// community with the largest modularity gain; rows follow the dendrogram depth first. On the graph
// of graph_of(). Sequential, because the merges depend on each other and the order must not depend
// on threads.

#include <utility>

#include "reorder/graph.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

constexpr std::int32_t kNone = -1;

class Communities {
 public:
  explicit Communities(const Graph& graph)
      : graph_(graph),
        parent_(graph.size()),
        first_child_(graph.size(), kNone),
        sibling_(graph.size(), kNone),
        strength_(graph.size()),
        edges_(graph.size()),
        weight_to_(graph.size(), 0) {
    for (std::int64_t v = 0; v < graph.size(); ++v) {
      parent_[v] = static_cast<std::int32_t>(v);
      strength_[v] = static_cast<double>(graph.degree(v));
    }
    total_ = static_cast<double>(graph.ptr.back());
  }

  void merge_all() {
    for (const std::int32_t u : by_degree(graph_)) {
      aggregate(u);
      const std::int32_t v = best_neighbor(u);
      if (v != kNone) {
        for (const std::int32_t root : touched_) edges_[u].emplace_back(root, weight_to_[root]);
        parent_[u] = v;
        strength_[v] += strength_[u];
        sibling_[u] = first_child_[v];
        first_child_[v] = u;
      }
      for (const std::int32_t root : touched_) weight_to_[root] = 0;
      touched_.clear();
    }
  }

  // Every community's vertices, depth first.
  template <class Visit>
  void traverse(Visit&& visit) const {
    std::vector<std::int32_t> stack;
    for (std::int64_t v = 0; v < graph_.size(); ++v) {
      if (parent_[v] != v) continue;
      stack.push_back(static_cast<std::int32_t>(v));
      while (!stack.empty()) {
        const std::int32_t u = stack.back();
        stack.pop_back();
        visit(u);
        for (std::int32_t c = first_child_[u]; c != kNone; c = sibling_[c]) stack.push_back(c);
      }
    }
  }

 private:
  std::int32_t root_of(std::int32_t v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }

  void add_edge(std::int32_t u, std::int32_t to, float weight) {
    const std::int32_t root = root_of(to);
    if (root == u) return;
    if (weight_to_[root] == 0) touched_.push_back(root);
    weight_to_[root] += weight;
  }

  // Edges of u's community by neighbouring community: its own and those its children collected.
  void aggregate(std::int32_t u) {
    for (const std::int32_t v : graph_.neighbors(u)) add_edge(u, v, 1);
    for (std::int32_t c = first_child_[u]; c != kNone; c = sibling_[c]) {
      for (const auto& [v, weight] : edges_[c]) add_edge(u, v, weight);
      std::vector<std::pair<std::int32_t, float>>().swap(edges_[c]);
    }
  }

  std::int32_t best_neighbor(std::int32_t u) const {
    double best = 0;
    std::int32_t best_v = kNone;
    for (const std::int32_t v : touched_) {
      const double gain = weight_to_[v] / total_ - strength_[u] * strength_[v] / (total_ * total_);
      if (gain > best) best = gain, best_v = v;
    }
    return best_v;
  }

  const Graph& graph_;
  std::vector<std::int32_t> parent_, first_child_, sibling_;
  std::vector<double> strength_;                                    // sum of degrees
  std::vector<std::vector<std::pair<std::int32_t, float>>> edges_;  // of merged communities
  std::vector<float> weight_to_;
  std::vector<std::int32_t> touched_;
  double total_ = 0;  // twice the edges
};

class Rabbit final : public Reordering {
 public:
  std::string name() const override { return "rabbit"; }
  std::string summary() const override {
    return "Rabbit order: communities by modularity, on A + A^T (bipartite when not square)";
  }
  Permutation compute(const CsrMatrix& matrix, const Options& options) const override {
    options.require_known({}, name());
    const Graph graph = graph_of(matrix);
    Communities communities(graph);
    communities.merge_all();
    Permutation order;
    order.reserve(matrix.rows);
    communities.traverse([&](std::int32_t v) {
      if (v < matrix.rows) order.push_back(v);
    });
    return order;
  }
};

SPMMBENCH_REGISTER_REORDERING(Rabbit);

}  // namespace
}  // namespace spmmbench
