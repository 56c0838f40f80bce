#include "io/delaunay.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

__extension__ using Wide = __int128;

// Determinant of the first N columns of N rows, by expansion along the last column.
template <int N, class T, class Rows>
T determinant(const Rows& m) {
  if constexpr (N == 2) {
    return T(m[0][0]) * T(m[1][1]) - T(m[0][1]) * T(m[1][0]);
  } else {
    T sum = 0;
    for (int skip = 0; skip < N; ++skip) {
      std::array<std::array<typename Rows::value_type::value_type, N - 1>, N - 1> minor;
      for (int r = 0, to = 0; r < N; ++r)
        if (r != skip) std::copy_n(m[r].begin(), N - 1, minor[to++].begin());
      const T term = T(m[skip][N - 1]) * determinant<N - 1, T>(minor);
      sum += (skip + N - 1) % 2 == 0 ? term : -term;
    }
    return sum;
  }
}

// Sign of the determinant: in double where `scale`, the largest possible product, shows that
// rounding cannot change it, else exactly.
template <int N, class Rows>
int determinant_sign(const Rows& m, double scale) {
  const double approximate = determinant<N, double>(m);
  if (std::abs(approximate) > 1e-13 * scale) return approximate > 0 ? 1 : -1;
  const Wide exact = determinant<N, Wide>(m);
  return exact > 0 ? 1 : exact < 0 ? -1 : 0;
}

template <int D>
class Triangulation {
 public:
  explicit Triangulation(std::vector<Point<D>>& points)
      : points_(points), real_(static_cast<std::int32_t>(points.size())) {
    // One simplex around all: a corner below the cube and one far along each axis.
    constexpr std::int32_t kSide = 1 << kCoordinateBits;
    Cell outer;
    for (int i = 0; i <= D; ++i) {
      Point<D> corner;
      corner.fill(-kSide);
      if (i > 0) corner[i - 1] = 7 * kSide;
      points_.push_back(corner);
      outer.vertex[i] = real_ + i;
      outer.neighbour[i] = -1;
    }
    if (orientation(outer.vertex) < 0) std::swap(outer.vertex[0], outer.vertex[1]);
    cells_.push_back(outer);
    marked_.push_back(0);
  }

  void insert_all() {
    for (std::int32_t p = 0; p < real_; ++p) {
      int attempt = 0;
      while (!insert(p)) {
        if (++attempt > 64) throw Error("mesh: too many points in one place");
        std::int32_t& x = points_[p][attempt % D];
        x += x < (1 << (kCoordinateBits - 1)) ? attempt : -attempt;
      }
    }
    points_.resize(real_);
  }

  std::vector<Simplex<D>> simplices() const {
    std::vector<Simplex<D>> out;
    for (const Cell& cell : cells_)
      if (cell.alive && std::all_of(cell.vertex.begin(), cell.vertex.end(),
                                    [&](std::int32_t v) { return v < real_; }))
        out.push_back(cell.vertex);
    return out;
  }

 private:
  struct Cell {
    Simplex<D> vertex;                          // positively oriented
    std::array<std::int32_t, D + 1> neighbour;  // across the facet opposite vertex i; -1 outside
    bool alive = true;
  };
  struct Facet {
    std::int32_t cell;
    int opposite;
  };
  struct Ridge {
    std::array<std::int32_t, D - 1> vertex;  // ascending; the new point is the remaining one
    std::int32_t cell;
    int opposite;
    bool operator<(const Ridge& other) const { return vertex < other.vertex; }
  };

  int orientation(const Simplex<D>& s) const {
    std::array<std::array<std::int64_t, D>, D> m;
    double scale = 1;
    for (int i = 0; i < D; ++i) {
      std::int64_t largest = 1;
      for (int k = 0; k < D; ++k) {
        m[i][k] = std::int64_t{points_[s[i]][k]} - points_[s[D]][k];
        largest = std::max(largest, std::abs(m[i][k]));
      }
      scale *= static_cast<double>(largest);
    }
    return determinant_sign<D>(m, 6 * scale);
  }

  bool sphere_contains(const Simplex<D>& s, std::int32_t p) const {
    std::array<std::array<std::int64_t, D + 1>, D + 1> m;
    double scale = 1;
    for (int i = 0; i <= D; ++i) {
      m[i][D] = 0;
      std::int64_t largest = 1;
      for (int k = 0; k < D; ++k) {
        m[i][k] = std::int64_t{points_[s[i]][k]} - points_[p][k];
        m[i][D] += m[i][k] * m[i][k];
        largest = std::max(largest, std::abs(m[i][k]));
      }
      scale = std::max(scale, static_cast<double>(largest));
    }
    return determinant_sign<D + 1>(m, 72 * std::pow(scale, D + 2)) > 0;
  }

  std::int32_t locate(std::int32_t p) const {
    std::int32_t cell = last_;
    for (int i = 0; i <= D;) {
      Simplex<D> s = cells_[cell].vertex;
      s[i] = p;
      if (orientation(s) < 0) {
        cell = cells_[cell].neighbour[i];
        i = 0;
      } else {
        ++i;
      }
    }
    return cell;
  }

  // The cells whose sphere holds p, and the facets around them.
  void find_cavity(std::int32_t p) {
    ++mark_;
    cavity_.assign(1, locate(p));
    border_.clear();
    marked_[cavity_[0]] = mark_;
    for (std::size_t head = 0; head < cavity_.size(); ++head) {
      const std::int32_t cell = cavity_[head];
      for (int i = 0; i <= D; ++i) {
        const std::int32_t next = cells_[cell].neighbour[i];
        if (next >= 0 && marked_[next] == mark_) continue;
        if (next >= 0 && sphere_contains(cells_[next].vertex, p)) {
          marked_[next] = mark_;
          cavity_.push_back(next);
        } else {
          border_.push_back({cell, i});
        }
      }
    }
  }

  // False, and nothing changed, when p lies in the plane of a facet that it should see.
  bool insert(std::int32_t p) {
    find_cavity(p);
    for (const Facet& facet : border_) {
      Simplex<D> s = cells_[facet.cell].vertex;
      s[facet.opposite] = p;
      if (orientation(s) <= 0) return false;
    }
    ridges_.clear();
    for (const Facet& facet : border_) {
      Cell cell = cells_[facet.cell];
      cell.vertex[facet.opposite] = p;
      const std::int32_t index = new_cell();
      const std::int32_t outside = cell.neighbour[facet.opposite];
      if (outside >= 0) {
        auto& back = cells_[outside].neighbour;
        *std::find(back.begin(), back.end(), facet.cell) = index;
      }
      cells_[index] = cell;
      for (int i = 0; i <= D; ++i) {
        if (i == facet.opposite) continue;
        Ridge ridge{{}, index, i};
        for (int k = 0, to = 0; k <= D; ++k)
          if (k != i && k != facet.opposite) ridge.vertex[to++] = cell.vertex[k];
        std::sort(ridge.vertex.begin(), ridge.vertex.end());
        ridges_.push_back(ridge);
      }
    }
    std::sort(ridges_.begin(), ridges_.end());
    for (std::size_t i = 0; i < ridges_.size(); i += 2) {
      const Ridge &a = ridges_[i], &b = ridges_[i + 1];
      cells_[a.cell].neighbour[a.opposite] = b.cell;
      cells_[b.cell].neighbour[b.opposite] = a.cell;
    }
    for (const std::int32_t cell : cavity_) {
      cells_[cell].alive = false;
      free_.push_back(cell);
    }
    last_ = ridges_.front().cell;
    return true;
  }

  std::int32_t new_cell() {
    if (free_.empty()) {
      cells_.emplace_back();
      marked_.push_back(0);
      return static_cast<std::int32_t>(cells_.size() - 1);
    }
    const std::int32_t cell = free_.back();
    free_.pop_back();
    return cell;
  }

  std::vector<Point<D>>& points_;
  std::int32_t real_, last_ = 0;
  std::uint32_t mark_ = 0;
  std::vector<Cell> cells_;
  std::vector<std::uint32_t> marked_;  // per cell: the insertion that put it into the cavity
  std::vector<std::int32_t> free_, cavity_;
  std::vector<Facet> border_;
  std::vector<Ridge> ridges_;
};

}  // namespace

template <int D>
std::vector<Simplex<D>> delaunay(std::vector<Point<D>>& points) {
  Triangulation<D> triangulation(points);
  triangulation.insert_all();
  return triangulation.simplices();
}

template std::vector<Simplex<2>> delaunay<2>(std::vector<Point<2>>&);
template std::vector<Simplex<3>> delaunay<3>(std::vector<Point<3>>&);

}  // namespace spmmbench
