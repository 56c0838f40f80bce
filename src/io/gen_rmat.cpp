// R-MAT graph (Chakrabarti, Zhan, Faloutsos 2004) with the Graph500 parameters as defaults: each
// edge descends `scale` levels of the adjacency matrix, choosing a quadrant at each.

#include "io/generator_util.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::gen_rmat {
namespace {

const auto kScale = integer_option<std::int64_t>("scale", 14, 1, 30, "2^scale vertices");
const auto kEdgeFactor = integer_option<std::int64_t>(
    "edge_factor", 16, 1, 1 << 16, "edges drawn per vertex, before repeats are merged");
const auto kA = real_option("a", "0.57", 0, 1, "probability of the upper left quadrant");
const auto kB = real_option("b", "0.19", 0, 1, "probability of the upper right quadrant");
const auto kC = real_option("c", "0.19", 0, 1,
                            "probability of the lower left quadrant; the rest is lower right");
const auto kSymmetric = flag_option("symmetric", false, "store both directions of every edge");
const auto kShuffle =
    flag_option("shuffle", true, "number the vertices at random, as Graph500 does");

std::int64_t edge_count(const Options& options) {
  return (std::int64_t{1} << kScale(options)) * kEdgeFactor(options);
}

class Rmat final : public Generator {
 public:
  std::string name() const override { return "rmat"; }
  std::string summary() const override { return "R-MAT power-law graph, Graph500 style"; }
  std::vector<OptionSpec> options() const override {
    return {kScale, kEdgeFactor, kA, kB, kC, kSymmetric, kShuffle, kSeed};
  }

  void check(const Options& options) const override {
    if (kA(options) + kB(options) + kC(options) > 1)
      throw Error("rmat: expected a + b + c at most 1");
    require_entries(static_cast<double>(edge_count(options)) * (kSymmetric(options) ? 2 : 1),
                    kBytesOfEdges);
  }

  Generated generate(const Options& options) const override {
    const std::int64_t scale = kScale(options), count = edge_count(options);
    const std::int64_t vertices = std::int64_t{1} << scale;
    const double a = kA(options), b = kB(options), c = kC(options);
    const bool symmetric = kSymmetric(options);
    const std::uint64_t seed = kSeed(options);

    std::vector<std::int32_t> label;
    if (kShuffle(options)) label = random_permutation(vertices, stream_seed(seed, 1));
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
    return {pattern_from_edges(vertices, vertices, std::move(edges), symmetric), true, {}};
  }
};

}  // namespace
}  // namespace spmmbench::gen_rmat

SPMMBENCH_REGISTER_GENERATOR(spmmbench::gen_rmat::Rmat);
