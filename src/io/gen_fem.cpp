// Finite-element stiffness patterns (linear elements) on an unstructured mesh: a square or cube
// with round holes, vertices denser near them, Delaunay elements, `dof` unknowns per vertex.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "io/delaunay.hpp"
#include "io/generator_util.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::gen_fem {
namespace {

template <int D>
using Position = std::array<double, D>;  // in the unit square or cube

template <int D>
class Domain {
 public:
  Domain(std::int64_t holes, std::uint64_t seed) {
    for (std::int64_t i = 0; i < holes; ++i) {
      RandomStream random(seed, i);
      Hole hole;
      for (double& x : hole.centre) x = random.unit();
      hole.radius = (0.15 + 0.15 * random.unit()) * std::pow(static_cast<double>(holes), -1.0 / D);
      holes_.push_back(hole);
    }
  }

  // To the nearest hole's border, negative inside it; to the corner at 0 when there are no holes.
  double distance(const Position<D>& x) const {
    double nearest = holes_.empty() ? norm(x, {}) : 2;
    for (const Hole& hole : holes_) nearest = std::min(nearest, norm(x, hole.centre) - hole.radius);
    return nearest;
  }
  bool inside(const Position<D>& x) const { return holes_.empty() || distance(x) >= 0; }

 private:
  struct Hole {
    Position<D> centre;
    double radius;
  };
  static double norm(const Position<D>& a, const Position<D>& b) {
    double sum = 0;
    for (int k = 0; k < D; ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
    return std::sqrt(sum);
  }
  std::vector<Hole> holes_;
};

// Vertices of a mesh in Morton order. A quadtree (octree) is split until its cells are as small as
// the local mesh size; each leaf holds one vertex at a random place.
template <int D>
class VertexPlacer {
 public:
  VertexPlacer(const Domain<D>& domain, double grading, std::uint64_t seed)
      : domain_(domain), grading_(grading), seed_(seed) {}

  // Exactly `count` vertices: the mesh size is found by bisection, the few too many dropped.
  std::vector<Point<D>> place(std::int64_t count) const {
    double fine = std::ldexp(1.0, -kMaxDepth), coarse = 4;
    for (int step = 0; step < 40; ++step) {
      const double middle = std::sqrt(fine * coarse);
      (std::ssize(leaves(middle, count)) >= count ? fine : coarse) = middle;
    }
    const std::vector<Point<D>> all = leaves(fine, INT64_MAX);
    RandomStream random(stream_seed(seed_, 1), 0);
    std::vector<Point<D>> kept;
    for (const std::int32_t i : sample_distinct(random, std::ssize(all), count))
      kept.push_back(all[i]);
    return kept;
  }

 private:
  static constexpr int kMaxDepth = 17;  // leaves of 8 coordinate units

  struct Cell {
    Point<D> corner;
    int depth;
  };

  // Stops once there are `enough`.
  std::vector<Point<D>> leaves(double mesh_size, std::int64_t enough) const {
    std::vector<Point<D>> out;
    std::vector<Cell> stack = {{{}, 0}};
    while (!stack.empty() && std::ssize(out) < enough) {
      const Cell cell = stack.back();
      stack.pop_back();
      const std::int32_t side = 1 << (kCoordinateBits - cell.depth);
      RandomStream random(seed_, cell_id(cell));
      Position<D> centre;
      for (int k = 0; k < D; ++k) centre[k] = unit(cell.corner[k] + side / 2);
      const double local = mesh_size * (1 + grading_ * std::max(0.0, domain_.distance(centre)));
      // The random factor keeps cells of equal size from forming a lattice.
      if (cell.depth < kMaxDepth && unit(side) > local * std::exp2(random.unit() - 0.5)) {
        for (int child = (1 << D) - 1; child >= 0; --child) {
          Cell next{cell.corner, cell.depth + 1};
          for (int k = 0; k < D; ++k)
            if ((child >> k & 1) != 0) next.corner[k] += side / 2;
          stack.push_back(next);
        }
        continue;
      }
      Point<D> vertex;
      Position<D> x;
      for (int k = 0; k < D; ++k) {
        vertex[k] = cell.corner[k] + static_cast<std::int32_t>(random.below(side));
        x[k] = unit(vertex[k]);
      }
      if (domain_.inside(x)) out.push_back(vertex);
    }
    return out;
  }

  static double unit(std::int32_t coordinate) { return std::ldexp(coordinate, -kCoordinateBits); }
  static std::uint64_t cell_id(const Cell& cell) {
    std::uint64_t id = cell.depth;
    for (int k = 0; k < D; ++k) id = id << kCoordinateBits | cell.corner[k];
    return id;
  }

  const Domain<D>& domain_;
  double grading_;
  std::uint64_t seed_;
};

// Vertices that share an element, in the numbering of `points`; no diagonal.
template <int D>
CsrMatrix element_graph(std::vector<Point<D>>& points, const Domain<D>& domain) {
  std::vector<Edge> edges;
  for (const Simplex<D>& element : delaunay<D>(points)) {
    Position<D> centroid{};
    for (const std::int32_t v : element)
      for (int k = 0; k < D; ++k)
        centroid[k] += std::ldexp(points[v][k], -kCoordinateBits) / (D + 1);
    if (!domain.inside(centroid)) continue;
    for (int i = 0; i <= D; ++i)
      for (int j = 0; j < i; ++j) edges.push_back({element[i], element[j]});
  }
  return pattern_from_edges(std::ssize(points), std::ssize(points), std::move(edges), true);
}

template <int D>
std::vector<std::int32_t> sweep_positions(const std::vector<Point<D>>& points) {
  std::vector<std::int32_t> order(points.size()), position(points.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return points[a] != points[b] ? points[a] < points[b] : a < b;
  });
  for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = static_cast<std::int32_t>(i);
  return position;
}

// Every vertex becomes `dof` consecutive unknowns, coupled to all of its own and its neighbours'.
CsrMatrix expand_dof(const CsrMatrix& graph, std::int64_t dof) {
  return pattern_from_rows(graph.rows * dof, graph.cols * dof, [&](std::int64_t r, Columns& out) {
    const std::int64_t v = r / dof;
    const auto couple = [&](std::int64_t to) {
      for (std::int64_t d = 0; d < dof; ++d) out.push_back(static_cast<std::int32_t>(to * dof + d));
    };
    couple(v);
    for (std::int64_t e = graph.row_ptr[v]; e < graph.row_ptr[v + 1]; ++e) couple(graph.col_idx[e]);
  });
}

template <int D>
const auto kVertices = integer_option<std::int64_t>("vertices", 20000, D + 1, 100'000'000,
                                                    "mesh vertices; rows = vertices * dof");
const auto kDof =
    integer_option<std::int64_t>("dof", 1, 1, 8, "unknowns per vertex: 1 heat, 2 or 3 elasticity");
const auto kHoles = integer_option<std::int64_t>("holes", 3, 0, 64, "round holes in the domain");
const auto kGrading = real_option(
    "grading", "4", 0, 100, "growth of the mesh size with the distance from the holes; 0: even");
const auto kNumbering =
    choice_option("numbering", "bfs", {"bfs", "sweep", "morton", "random"},
                  "order of the vertices: breadth first, by x, Morton or random");

template <int D>
class FiniteElements final : public Generator {
 public:
  std::string name() const override { return fmt::format("fem{}d", D); }
  std::string summary() const override {
    return fmt::format("finite-element stiffness pattern, {}",
                       D == 2 ? "unstructured triangles" : "unstructured tetrahedra");
  }
  std::vector<OptionSpec> options() const override {
    return {kVertices<D>, kDof, kHoles, kGrading, kNumbering, kSeed};
  }

  void check(const Options& options) const override {
    const std::int64_t dof = kDof(options);
    // While the graph of vertices is made, each of them takes about so much: 6 or 39 edges, since
    // elements share them, in room for twice as many, and both columns of each.
    constexpr double kGraphBytes = D == 2 ? 6 * 24.0 : 39 * 24.0;
    const double entries = (D == 2 ? 7.0 : 16.0) * static_cast<double>(dof * dof);  // of a vertex
    require_entries(entries * static_cast<double>(kVertices<D>(options)),
                    std::max(kBytesOfRows, kGraphBytes / entries));
  }

  Generated generate(const Options& options) const override {
    const std::int64_t vertices = kVertices<D>(options), dof = kDof(options);
    const std::string numbering = kNumbering(options);
    const std::uint64_t seed = kSeed(options);

    const Domain<D> domain(kHoles(options), stream_seed(seed, 1));
    const VertexPlacer<D> placer(domain, kGrading(options), stream_seed(seed, 2));
    std::vector<Point<D>> points = placer.place(vertices);
    CsrMatrix graph = element_graph<D>(points, domain);
    if (numbering == "bfs") graph = relabel(graph, breadth_first_positions(graph));
    if (numbering == "sweep") graph = relabel(graph, sweep_positions<D>(points));
    if (numbering == "random")
      graph = relabel(graph, random_permutation(vertices, stream_seed(seed, 3)));
    return {expand_dof(graph, dof), true, {}};
  }
};

}  // namespace
}  // namespace spmmbench::gen_fem

SPMMBENCH_REGISTER_GENERATOR(spmmbench::gen_fem::FiniteElements<2>);
SPMMBENCH_REGISTER_GENERATOR(spmmbench::gen_fem::FiniteElements<3>);
