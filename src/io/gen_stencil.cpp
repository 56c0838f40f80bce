// Finite-difference stencils on a regular grid, natural order: x fastest.

#include <cstdlib>

#include "io/generator_util.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::gen_stencil {
namespace {

const auto kPoints = choice_option<int>("points", "7", {"5", "7", "9", "27"},
                                        "5 and 9: on a plane grid, 7 and 27: on a space grid");
const auto kNx = extent_option("nx", 32, "grid points along x");
const auto kNy = auto_extent_option("ny", "grid points along y; auto: nx");
const auto kNz = auto_extent_option("nz", "grid points along z, space grids only; auto: nx");

struct Grid {
  std::int64_t nx, ny, nz;
  bool space, corners;
};

Grid grid_of(const Options& options) {
  const int points = kPoints(options);
  const bool space = points == 7 || points == 27;
  const std::int64_t nx = kNx(options);
  return {nx, kNy(options).value_or(nx), space ? kNz(options).value_or(nx) : 1, space,
          points == 9 || points == 27};
}

class Stencil final : public Generator {
 public:
  std::string name() const override { return "stencil"; }
  std::string summary() const override { return "5/9-point (2-D) or 7/27-point (3-D) stencil"; }
  std::vector<OptionSpec> options() const override { return {kPoints, kNx, kNy, kNz}; }

  void check(const Options& options) const override {
    const Grid grid = grid_of(options);
    if (!grid.space && kNz(options)) throw Error("stencil: nz is for the 7- and 27-point stencils");
    if (grid.nx > kMaxExtent / grid.ny || grid.nx * grid.ny > kMaxExtent / grid.nz)
      throw Error("stencil: expected fewer than 2^31 grid points");
    require_entries(static_cast<double>(grid.nx * grid.ny * grid.nz) * kPoints(options));
  }

  Generated generate(const Options& options) const override {
    const Grid grid = grid_of(options);
    const std::int64_t nx = grid.nx, ny = grid.ny, nz = grid.nz;
    const std::int64_t count = nx * ny * nz;
    return {pattern_from_rows(
                count, count,
                [&](std::int64_t r, Columns& out) {
                  const std::int64_t x = r % nx, y = r / nx % ny, z = r / nx / ny;
                  for (int dz = -1; dz <= 1; ++dz)
                    for (int dy = -1; dy <= 1; ++dy)
                      for (int dx = -1; dx <= 1; ++dx) {
                        if (!grid.corners && std::abs(dx) + std::abs(dy) + std::abs(dz) > 1)
                          continue;
                        if (x + dx < 0 || x + dx >= nx || y + dy < 0 || y + dy >= ny ||
                            z + dz < 0 || z + dz >= nz)
                          continue;
                        out.push_back(static_cast<std::int32_t>(r + dx + nx * (dy + ny * dz)));
                      }
                }),
            true,
            {}};
  }
};

}  // namespace
}  // namespace spmmbench::gen_stencil

SPMMBENCH_REGISTER_GENERATOR(spmmbench::gen_stencil::Stencil);
