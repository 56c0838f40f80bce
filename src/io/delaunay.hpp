#pragma once
// Delaunay triangulation in the plane (D = 2) and in space (D = 3), for the finite-element
// generators. Predicates are exact on integer coordinates, so the result is the same everywhere.

#include <array>
#include <cstdint>
#include <vector>

namespace spmmbench {

inline constexpr int kCoordinateBits = 20;  // the in-sphere determinant must fit 127 bits

template <int D>
using Point = std::array<std::int32_t, D>;  // each in [0, 2^kCoordinateBits)
template <int D>
using Simplex = std::array<std::int32_t, D + 1>;  // vertex numbers

// Simplices that cover the points' hull except slivers at its border. `points` should be in a
// spatially coherent order (each near its predecessor); a point in degenerate position (repeated,
// or in one plane with others where that matters) is moved by a few units. Bowyer and Watson 1981.
template <int D>
std::vector<Simplex<D>> delaunay(std::vector<Point<D>>& points);

extern template std::vector<Simplex<2>> delaunay<2>(std::vector<Point<2>>&);
extern template std::vector<Simplex<3>> delaunay<3>(std::vector<Point<3>>&);

}  // namespace spmmbench
