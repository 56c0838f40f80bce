// R-MAT graph (Chakrabarti, Zhan, Faloutsos 2004) with the Graph500 parameters as defaults: each
// edge descends `scale` levels of the adjacency matrix, choosing a quadrant at each.

#include "io/generator_util.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

class Rmat final : public Generator {
 public:
  std::string name() const override { return "rmat"; }
  std::string summary() const override { return "R-MAT power-law graph, Graph500 style"; }
  std::vector<OptionSpec> options() const override {
    return {{"scale", "14", "2^scale vertices"},
            {"edge_factor", "16", "edges drawn per vertex, before repeats are merged"},
            {"a", "0.57", "probability of the upper left quadrant"},
            {"b", "0.19", "probability of the upper right quadrant"},
            {"c", "0.19", "probability of the lower left quadrant; the rest is lower right"},
            {"symmetric", "0", "1: store both directions of every edge"},
            {"shuffle", "1", "1: number the vertices at random, as Graph500 does"},
            kSeedOption};
  }

  Generated generate(const Options& given) const override {
    const OptionReader options(*this, given);
    const std::int64_t scale = options.integer("scale", 1, 30);
    const std::int64_t vertices = std::int64_t{1} << scale;
    const std::int64_t count = vertices * options.integer("edge_factor", 1, 1 << 16);
    const double a = options.number("a", 0, 1), b = options.number("b", 0, 1),
                 c = options.number("c", 0, 1);
    if (a + b + c > 1) throw Error("rmat: expected a + b + c at most 1");
    const bool symmetric = options.flag("symmetric");
    require_entries(static_cast<double>(count) * (symmetric ? 2 : 1));
    const std::uint64_t seed = options.seed();

    std::vector<std::int32_t> label;
    if (options.flag("shuffle")) label = random_permutation(vertices, stream_seed(seed, 1));
    std::vector<Edge> edges(count);
#pragma omp parallel for schedule(static)
    for (std::int64_t e = 0; e < count; ++e) {
      RandomStream random(seed, e);
      std::int32_t row = 0, col = 0;
      for (std::int64_t level = 0; level < scale; ++level) {
        const double u = random.unit();
        row = 2 * row + (u >= a + b ? 1 : 0);
        col = 2 * col + ((u >= a && u < a + b) || u >= a + b + c ? 1 : 0);
      }
      edges[e] = label.empty() ? Edge{row, col} : Edge{label[row], label[col]};
    }
    return {pattern_from_edges(vertices, vertices, edges, symmetric), true, {}};
  }
};

}  // namespace
}  // namespace spmmbench

SPMMBENCH_REGISTER_GENERATOR(spmmbench::Rmat);
