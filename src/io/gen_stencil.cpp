// Finite-difference stencils on a regular grid, natural order: x fastest.

#include <cstdlib>

#include "io/generator_util.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

class Stencil final : public Generator {
 public:
  std::string name() const override { return "stencil"; }
  std::string summary() const override { return "5/9-point (2-D) or 7/27-point (3-D) stencil"; }
  std::vector<OptionSpec> options() const override {
    return {{"points", "7", "5 or 9 on a plane grid, 7 or 27 on a space grid"},
            {"nx", "32", "grid points along x"},
            {"ny", "auto", "grid points along y; nx unless given"},
            {"nz", "auto", "grid points along z, space grids only; nx unless given"}};
  }

  Generated generate(const Options& given) const override {
    const OptionReader options(*this, given);
    const std::string points = options.choice("points", {"5", "9", "7", "27"});
    const bool space = points == "7" || points == "27", corners = points == "9" || points == "27";
    if (!space && options.given("nz"))
      throw Error("stencil: nz is for the 7- and 27-point stencils");
    const std::int64_t nx = options.extent("nx");
    const std::int64_t ny = options.given("ny") ? options.extent("ny") : nx;
    const std::int64_t nz = !space ? 1 : options.given("nz") ? options.extent("nz") : nx;
    if (nx > kMaxExtent / ny || nx * ny > kMaxExtent / nz)
      throw Error("stencil: expected fewer than 2^31 grid points");
    const std::int64_t count = nx * ny * nz;
    return {pattern_from_rows(
                count, count,
                [&](std::int64_t r, Columns& out) {
                  const std::int64_t x = r % nx, y = r / nx % ny, z = r / nx / ny;
                  for (int dz = -1; dz <= 1; ++dz)
                    for (int dy = -1; dy <= 1; ++dy)
                      for (int dx = -1; dx <= 1; ++dx) {
                        if (!corners && std::abs(dx) + std::abs(dy) + std::abs(dz) > 1) continue;
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
}  // namespace spmmbench

SPMMBENCH_REGISTER_GENERATOR(spmmbench::Stencil);
