#include "reorder/rsh_path.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include "core/parallel.hpp"
#include "reorder/threads.hpp"

namespace spmmbench {
namespace {

// The edges of the neighbour graph, by similarity. Where two rows are in each other's lists, only
// the entry of the earlier row counts as an edge.
class NeighborEdges {
 public:
  NeighborEdges(const RshNeighbors& neighbors, std::int64_t rows)
      : neighbors_(neighbors), is_edge_(rows * neighbors.k) {
    const int k = neighbors.k;
#pragma omp parallel for schedule(static)
    for (std::int64_t slot = 0; slot < rows * k; ++slot) {
      const std::int64_t row = slot / k, other = neighbors.row[slot];
      const auto is_in_list_of_other = [&] {
        const auto list = neighbors.row.begin() + other * k;
        return std::find(list, list + k, row) != list + k;
      };
      is_edge_[slot] = other > row || (other >= 0 && !is_in_list_of_other());
    }
    // A counting sort of the rows by similarity. A row appears once for each similarity that its
    // edges have. Only similarities that occur are counted, since a small matrix has few.
    std::vector<std::uint16_t> place(65536, 0);
    for (std::int64_t slot = 0; slot < rows * k; ++slot)
      if (is_edge_[slot] != 0) place[neighbors.similarity[slot]] = 1;
    for (int similarity = 65535; similarity >= 0; --similarity)
      if (place[similarity] != 0) {
        place[similarity] = static_cast<std::uint16_t>(levels_.size());
        levels_.push_back(static_cast<std::uint16_t>(similarity));
      }
    start_.assign(levels_.size() + 2, 0);
    for_each_level([&](std::int64_t, std::uint16_t s) { ++start_[place[s] + 2]; });
    for (std::size_t level = 0; level < levels_.size(); ++level)
      start_[level + 2] += start_[level + 1];
    rows_.resize(start_.back());
    for_each_level([&](std::int64_t row, std::uint16_t s) {
      rows_[start_[place[s] + 1]++] = static_cast<std::int32_t>(row);
    });
  }

  // Calls visit(row, other), the most similar pairs first, equal ones by row.
  template <class Visit>
  void for_each(Visit&& visit) const {
    constexpr std::int64_t kAhead = 16;  // the rows of a level lie far apart
    const auto last = static_cast<std::int64_t>(rows_.size()) - 1;
    for (std::size_t level = 0; level < levels_.size(); ++level)
      for (std::int64_t i = start_[level]; i < start_[level + 1]; ++i) {
        const std::int64_t ahead = slot_of(rows_[std::min(i + kAhead, last)]);
        __builtin_prefetch(&neighbors_.row[ahead]);
        __builtin_prefetch(&neighbors_.similarity[ahead]);
        __builtin_prefetch(&is_edge_[ahead]);
        const std::int64_t first = slot_of(rows_[i]);
        for (std::int64_t slot = first; slot < first + neighbors_.k; ++slot)
          if (is_edge_[slot] != 0 && neighbors_.similarity[slot] == levels_[level])
            visit(rows_[i], neighbors_.row[slot]);
      }
  }

 private:
  std::int64_t slot_of(std::int64_t row) const { return row * neighbors_.k; }

  // Calls visit(row, similarity) once for every similarity that a row's edges have. The neighbours
  // of a row are sorted by it.
  template <class Visit>
  void for_each_level(Visit&& visit) const {
    const std::int64_t slots = static_cast<std::int64_t>(is_edge_.size());
    for (std::int64_t row = 0, slot = 0; slot < slots; ++row)
      for (int last = -1; slot < (row + 1) * neighbors_.k; ++slot)
        if (is_edge_[slot] != 0 && neighbors_.similarity[slot] != last) {
          last = neighbors_.similarity[slot];
          visit(row, neighbors_.similarity[slot]);
        }
  }

  const RshNeighbors& neighbors_;
  std::vector<std::uint8_t> is_edge_;  // per slot
  std::vector<std::uint16_t> levels_;  // similarities that occur, descending
  std::vector<std::int64_t> start_;    // of each level in rows_
  std::vector<std::int32_t> rows_;
};

struct Edge {
  std::int32_t a, b;
};

// The forest's edges, most similar first.
std::vector<Edge> spanning_forest(const RshNeighbors& neighbors, std::int64_t rows) {
  std::vector<std::int32_t> parent(rows);
  std::iota(parent.begin(), parent.end(), 0);
  const auto root_of = [&](std::int32_t v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
  };
  const NeighborEdges edges(neighbors, rows);
  std::vector<Edge> forest;
  forest.reserve(rows);
  edges.for_each([&](std::int32_t row, std::int32_t other) {
    const std::int32_t a = root_of(row), b = root_of(other);
    if (a == b) return;
    parent[std::max(a, b)] = std::min(a, b);
    forest.push_back({row, other});
  });
  return forest;
}

// The costs between the rows of a stretch, and between them and the rows before and after it. Those
// two do not move.
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
  // The cost between two places. A missing row at either end costs nothing.
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
  std::vector<Edge> forest = spanning_forest(neighbors, rows);
  std::vector<std::int64_t> ptr(rows + 2, 0);
  for (const Edge edge : forest) ++ptr[edge.a + 2], ++ptr[edge.b + 2];
  for (std::int64_t row = 0; row < rows; ++row) ptr[row + 2] += ptr[row + 1];
  std::vector<std::int32_t> adjacent(ptr.back());
  // While the lists are filled, the next neighbour of v goes to ptr[v + 1], which becomes the end
  // of its list. The most similar edges come first, so they are first in each list.
  for (const Edge edge : forest) {
    adjacent[ptr[edge.a + 1]++] = edge.b;
    adjacent[ptr[edge.b + 1]++] = edge.a;
  }
  forest = {};
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
  const int threads =
      threads_for_tables(jaccard.matrix(), WeightedJaccard::Row::bytes(jaccard.matrix()));
  ExceptionTrap trap;
#pragma omp parallel num_threads(threads)
  {
    std::unique_ptr<WeightedJaccard::Row> one;
    trap.run([&] { one = std::make_unique<WeightedJaccard::Row>(jaccard); });
    for (const std::int64_t shift : {std::int64_t{0}, std::int64_t{window_rows}}) {
      const std::int64_t stretches =
          (std::max<std::int64_t>(rows - shift, 0) + length - 1) / length;
      // A stretch reads the row before and the row after it, which the neighbouring stretches may
      // move. So every other stretch is improved first, and then the rest.
      for (const std::int64_t parity : {0, 1}) {
#pragma omp for schedule(dynamic, 64)
        for (std::int64_t i = parity; i < stretches; i += 2) {
          if (trap.caught()) continue;
          const std::int64_t begin = shift + i * length;
          trap.run([&] { Stretch(*one, order, begin, std::min(begin + length, rows)).improve(); });
        }
      }
    }
  }
  trap.rethrow();
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
  // The rows that move behind a row form a list: it begins at last[row], and next[r] is the row
  // that was added before r.
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
