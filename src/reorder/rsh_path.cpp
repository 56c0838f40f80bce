#include "reorder/rsh_path.hpp"

#include <algorithm>
#include <numeric>

namespace spmmbench {
namespace {

struct Edge {
  std::int32_t a, b;
};

// The forest's edges, most similar first. Similarities have 65536 values, so that the sort is one
// counting pass; equal ones by row.
std::vector<Edge> spanning_forest(const RshNeighbors& neighbors, std::int64_t rows) {
  const int k = neighbors.k;
  constexpr std::size_t kLevels = 65536;
  const auto level = [&](std::int64_t slot) { return kLevels - 1 - neighbors.similarity[slot]; };
  // Of rows that are in each other's lists, the later one's entry says nothing new.
  const auto is_edge = [&](std::int64_t slot) {
    const std::int64_t row = slot / k, other = neighbors.row[slot];
    if (other < 0 || other > row) return other >= 0;
    const auto list = neighbors.row.begin() + other * k;
    return std::find(list, list + k, row) == list + k;
  };
  std::vector<std::int64_t> start(kLevels + 1, 0);
  for (std::int64_t slot = 0; slot < rows * k; ++slot)
    if (is_edge(slot)) ++start[level(slot) + 1];
  for (std::size_t i = 0; i < kLevels; ++i) start[i + 1] += start[i];
  std::vector<Edge> sorted(start.back());
  for (std::int64_t slot = 0; slot < rows * k; ++slot)
    if (is_edge(slot))
      sorted[start[level(slot)]++] = {static_cast<std::int32_t>(slot / k), neighbors.row[slot]};

  std::vector<std::int32_t> parent(rows);
  std::iota(parent.begin(), parent.end(), 0);
  const auto root_of = [&](std::int32_t v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
  };
  std::size_t kept = 0;
  for (const Edge edge : sorted) {
    const std::int32_t a = root_of(edge.a), b = root_of(edge.b);
    if (a == b) continue;
    parent[std::max(a, b)] = std::min(a, b);
    sorted[kept++] = edge;
  }
  sorted.resize(kept);
  sorted.shrink_to_fit();
  return sorted;
}

// Costs between the rows of one stretch and the rows before and after it, which stay.
class Stretch {
 public:
  Stretch(WeightedJaccard::Row& one, Permutation& order, std::int64_t begin, std::int64_t end)
      : rows_(order.data() + begin),
        size_(static_cast<int>(end - begin)),
        before_(begin > 0),
        after_(end < static_cast<std::int64_t>(order.size())) {
    width_ = size_ + 2;
    cost_.assign(width_ * width_, 0);
    const auto row = [&](int i) { return order[begin + i - 1]; };
    for (int i = before_ ? 0 : 1; i <= size_ + (after_ ? 1 : 0); ++i) {
      one.set(row(i));
      for (int j = std::max(i + 1, 1); j <= size_ + (after_ ? 1 : 0); ++j)
        cost_[i * width_ + j] = cost_[j * width_ + i] = 1 - one.similarity(row(j));
    }
    place_.resize(width_);
    std::iota(place_.begin(), place_.end(), 0);
  }

  void improve() {
    constexpr int kPasses = 4;       // later ones find next to nothing
    constexpr float kLeast = 1e-6F;  // rounding must not look like a gain
    for (int pass = 0; pass < kPasses; ++pass) {
      bool improved = false;
      for (int i = 1; i <= size_; ++i)
        for (int j = i + 1; j <= size_; ++j) {
          const float old_cost = cost(i - 1, i) + cost(j, j + 1);
          const float new_cost = cost(i - 1, j) + cost(i, j + 1);
          if (new_cost < old_cost - kLeast) {
            std::reverse(place_.begin() + i, place_.begin() + j + 1);
            improved = true;
          }
        }
      if (!improved) break;
    }
    const std::vector<std::int32_t> old(rows_, rows_ + size_);
    for (int i = 0; i < size_; ++i) rows_[i] = old[place_[i + 1] - 1];
  }

 private:
  // Between places; a missing row at either end costs nothing.
  float cost(int i, int j) const { return cost_[place_[i] * width_ + place_[j]]; }

  std::int32_t* rows_;
  int size_;
  bool before_, after_;
  int width_ = 0;
  std::vector<float> cost_;
  std::vector<std::int32_t> place_;
};

}  // namespace

Permutation spanning_forest_order(const RshNeighbors& neighbors, std::int64_t rows) {
  const std::vector<Edge> forest = spanning_forest(neighbors, rows);
  std::vector<std::int64_t> ptr(rows + 1, 0);
  for (const Edge edge : forest) ++ptr[edge.a + 1], ++ptr[edge.b + 1];
  for (std::int64_t row = 0; row < rows; ++row) ptr[row + 1] += ptr[row];
  std::vector<std::int32_t> adjacent(ptr.back());
  std::vector<std::int64_t> cursor(ptr.begin(), ptr.end() - 1);
  for (const Edge edge : forest) {  // most similar first, so lists are too
    adjacent[cursor[edge.a]++] = edge.b;
    adjacent[cursor[edge.b]++] = edge.a;
  }
  Permutation order;
  order.reserve(rows);
  std::vector<bool> visited(rows, false);
  std::vector<std::int32_t> stack;
  for (std::int64_t root = 0; root < rows; ++root) {
    if (visited[root]) continue;
    stack.push_back(static_cast<std::int32_t>(root));
    while (!stack.empty()) {
      const std::int32_t row = stack.back();
      stack.pop_back();
      visited[row] = true;
      order.push_back(row);
      for (std::int64_t i = ptr[row + 1]; i-- > ptr[row];)
        if (!visited[adjacent[i]]) stack.push_back(adjacent[i]);
    }
  }
  return order;
}

void two_opt(const WeightedJaccard& jaccard, int window_rows, Permutation& order) {
  const auto rows = static_cast<std::int64_t>(order.size());
  const std::int64_t length = 2 * window_rows;
#pragma omp parallel
  {
    WeightedJaccard::Row one(jaccard);
    for (const std::int64_t shift : {std::int64_t{0}, std::int64_t{window_rows}}) {
      const std::int64_t stretches =
          (std::max<std::int64_t>(rows - shift, 0) + length - 1) / length;
      // A stretch reads the rows at its ends, which its neighbours may move: so every other
      // stretch, then the rest.
      for (const std::int64_t parity : {0, 1}) {
#pragma omp for schedule(dynamic, 64)
        for (std::int64_t i = parity; i < stretches; i += 2) {
          const std::int64_t begin = shift + i * length;
          Stretch(one, order, begin, std::min(begin + length, rows)).improve();
        }
      }
    }
  }
}

void relocate_isolated(const WeightedJaccard& jaccard, const RshNeighbors& neighbors,
                       double threshold, Permutation& order) {
  const auto rows = static_cast<std::int64_t>(order.size());
  std::vector<std::uint8_t> isolated(rows, 0);
#pragma omp parallel for schedule(dynamic, 4096)
  for (std::int64_t i = 0; i < rows; ++i) {
    const bool left = i > 0 && jaccard.similarity(order[i - 1], order[i]) >= threshold;
    const bool right = i + 1 < rows && jaccard.similarity(order[i], order[i + 1]) >= threshold;
    isolated[order[i]] = !left && !right;
  }
  // Adopted rows hang on their host in a list: next[r] is the row adopted before r.
  std::vector<std::int32_t> last(rows, -1), next(rows, -1), tail;
  for (std::int64_t row = rows - 1; row >= 0; --row) {
    if (!isolated[row]) continue;
    std::int32_t host = -1;
    for (int i = 0; i < neighbors.k && host < 0; ++i) {
      const std::int32_t u = neighbors.row[row * neighbors.k + i];
      if (u >= 0 && !isolated[u] && neighbors.similarity[row * neighbors.k + i] > 0) host = u;
    }
    if (host < 0) continue;
    next[row] = last[host];
    last[host] = static_cast<std::int32_t>(row);
    isolated[row] = 2;  // adopted
  }
  Permutation out;
  out.reserve(rows);
  for (const std::int32_t row : order)
    if (isolated[row] == 0) {
      out.push_back(row);
      for (std::int32_t adopted = last[row]; adopted >= 0; adopted = next[adopted])
        out.push_back(adopted);
    } else if (isolated[row] == 1) {
      tail.push_back(row);
    }
  out.insert(out.end(), tail.begin(), tail.end());
  order = std::move(out);
}

}  // namespace spmmbench
