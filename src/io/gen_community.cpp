// Power-law graph with communities: a degree-corrected stochastic block model (Karrer and Newman
// 2011) whose degrees and community sizes follow power laws, as in the LFR benchmark
// (Lancichinetti, Fortunato, Radicchi 2008). Repeated edges merge, so the mean degree comes out a
// little lower.

#include <algorithm>

#include "io/generator_util.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::gen_community {
namespace {

// Picks vertices of [from, to) with probability proportional to their expected degree.
class DegreeSampler {
 public:
  explicit DegreeSampler(const std::vector<double>& degree) : prefix_(degree.size() + 1) {
    for (std::size_t v = 0; v < degree.size(); ++v) prefix_[v + 1] = prefix_[v] + degree[v];
  }
  std::int32_t pick(RandomStream& random, std::int64_t from, std::int64_t to) const {
    const double target = prefix_[from] + random.unit() * (prefix_[to] - prefix_[from]);
    const auto it = std::upper_bound(prefix_.begin() + from, prefix_.begin() + to, target);
    return static_cast<std::int32_t>(it - prefix_.begin() - 1);
  }

 private:
  std::vector<double> prefix_;
};

const auto kVertices =
    integer_option<std::int64_t>("vertices", 20000, 2, kMaxExtent, "number of vertices");
const auto kMean =
    real_option("mean", "16", 1e-3, kMaxExtent, "mean degree before repeated edges merge");
const auto kExponent =
    real_option("exponent", "2.5", 0.5, 10, "density of degrees falls as degree^-exponent");
const auto kMaxDegree =
    auto_extent_option("max_degree", "largest expected degree; auto: a tenth of the vertices");
const auto kCommunity = real_option("community", "200", 1, kMaxExtent, "mean community size");
const auto kCommunityExponent = real_option("community_exponent", "1.5", 0.5, 10,
                                            "density of community sizes falls as size^-exponent");
const auto kMixing =
    real_option("mixing", "0.2", 0, 1, "fraction of a vertex's edges that leave its community");
const auto kShuffle =
    flag_option("shuffle", false, "number the vertices at random instead of by community");

std::int64_t largest_degree(const Options& options) {
  return kMaxDegree(options).value_or(std::max<std::int64_t>(1, kVertices(options) / 10));
}

PowerLaw degree_law(const Options& options) {
  return {kMean(options), kExponent(options), static_cast<double>(largest_degree(options))};
}

class Community final : public Generator {
 public:
  std::string name() const override { return "community"; }
  std::string summary() const override { return "symmetric power-law graph with communities"; }
  std::vector<OptionSpec> options() const override {
    return {kVertices,          kMean,   kExponent, kMaxDegree, kCommunity,
            kCommunityExponent, kMixing, kShuffle,  kSeed};
  }

  void check(const Options& options) const override {
    const std::int64_t vertices = kVertices(options);
    const auto count = static_cast<double>(vertices);
    if (largest_degree(options) > vertices || kMean(options) > count || kCommunity(options) > count)
      throw Error("community: expected mean, max_degree and community at most vertices");
    require_entries(count * kMean(options), kBytesOfEdges);
    degree_law(options);
  }

  Generated generate(const Options& options) const override {
    const std::int64_t vertices = kVertices(options);
    const double mixing = kMixing(options);
    const PowerLaw degrees = degree_law(options);
    const std::uint64_t seed = kSeed(options);

    std::vector<double> degree(vertices);
    for (std::int64_t v = 0; v < vertices; ++v)
      degree[v] = degrees.at(RandomStream(stream_seed(seed, 1), v).unit());
    const DegreeSampler sampler(degree);
    const std::vector<std::int64_t> bounds = community_bounds(
        vertices, kCommunity(options), kCommunityExponent(options), stream_seed(seed, 2));

    // Each vertex draws half of its edges; the other half comes to it from those that pick it.
    CsrMatrix drawn = pattern_from_rows(vertices, vertices, [&](std::int64_t v, Columns& out) {
      const auto next = std::upper_bound(bounds.begin(), bounds.end(), v);
      const std::int64_t from = *(next - 1), to = *next;
      RandomStream random(stream_seed(seed, 3), v);
      // A hub cannot have more neighbours inside than there are: the rest leaves.
      const double inside = std::min((1 - mixing) * degree[v], static_cast<double>(to - from - 1));
      const std::int64_t inner = random.round(inside / 2);
      const std::int64_t outer = random.round((degree[v] - inside) / 2);
      for (std::int64_t e = 0; e < inner + outer; ++e) {
        const std::int32_t other =
            e < inner ? sampler.pick(random, from, to) : sampler.pick(random, 0, vertices);
        if (other != v) out.push_back(other);
      }
    });
    CsrMatrix graph = symmetrized(std::move(drawn));
    if (kShuffle(options))
      graph = relabel(graph, random_permutation(vertices, stream_seed(seed, 4)));
    return {std::move(graph), true, {}};
  }

 private:
  // Communities are consecutive vertices: first vertices, and the number of vertices at the end.
  static std::vector<std::int64_t> community_bounds(std::int64_t vertices, double mean,
                                                    double exponent, std::uint64_t seed) {
    std::vector<std::int64_t> bounds = {0};
    const auto total = static_cast<double>(vertices);
    // A power law needs room above its mean.
    const bool spread = 2 * mean < total;
    const PowerLaw sizes(spread ? mean : 1, exponent, spread ? std::min(20 * mean, total) : 2);
    RandomStream random(seed, 0);
    while (bounds.back() < vertices) {
      const double size = spread ? sizes.at(random.unit()) : mean;
      bounds.push_back(
          std::min(vertices, bounds.back() + std::max<std::int64_t>(1, random.round(size))));
    }
    return bounds;
  }
};

}  // namespace
}  // namespace spmmbench::gen_community

SPMMBENCH_REGISTER_GENERATOR(spmmbench::gen_community::Community);
