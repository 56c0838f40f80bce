// Circuit-like matrix (modified nodal analysis): a full diagonal, wires that are mostly short in
// the netlist's order with a power-law tail of long ones (Rent's rule), few nodes of large fan-out,
// and rails (supply, clock, reset) whose rows and columns are dense.

#include <cmath>

#include "io/generator_util.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::gen_circuit {
namespace {

const auto kNodes =
    integer_option<std::int64_t>("nodes", 20000, 2, kMaxExtent, "number of circuit nodes");
const auto kMean =
    real_option("mean", "6", 0.01, 1000,
                "mean number of wires at a node, rails not counted, before repeats merge");
const auto kReach =
    real_option("reach", "1.8", 1.05, 10, "density of wire lengths falls as length^-reach");
const auto kRails =
    integer_option<std::int64_t>("rails", 4, 0, 4096, "nodes with a dense row and column");
const auto kRailFraction = real_option(
    "rail_fraction", "0.1", 0, 1, "nodes on the first rail; each further rail has half as many");
const auto kUnsymmetric =
    real_option("unsymmetric", "0.1", 0, 1, "fraction of the wires stored in one direction only");

class Circuit final : public Generator {
 public:
  std::string name() const override { return "circuit"; }
  std::string summary() const override { return "circuit: local wires, dense supply rails"; }
  std::vector<OptionSpec> options() const override {
    return {kNodes, kMean, kReach, kRails, kRailFraction, kUnsymmetric, kSeed};
  }

  void check(const Options& options) const override {
    const std::int64_t nodes = kNodes(options);
    if (kRails(options) > nodes) throw Error("circuit: expected at most as many rails as nodes");
    require_entries(expected_entries(options), kBytesOfEdges);
  }

  Generated generate(const Options& options) const override {
    const std::int64_t nodes = kNodes(options), rail_count = kRails(options);
    const double mean = kMean(options), reach = kReach(options);
    const double rail_fraction = kRailFraction(options), unsymmetric = kUnsymmetric(options);
    const std::uint64_t seed = kSeed(options);

    RandomStream placement(stream_seed(seed, 1), 0);
    const Columns rail_set = sample_distinct(placement, nodes, rail_count);
    std::vector<std::int32_t> rails;
    for (const std::int32_t i : random_permutation(rail_count, stream_seed(seed, 2)))
      rails.push_back(rail_set[i]);

    const PowerLaw fan_out(mean / 2, 2.7, 50 * mean);
    std::vector<Edge> edges;
    edges.reserve(static_cast<std::size_t>(expected_entries(options)));
    for (std::int64_t i = 0; i < nodes; ++i) {
      const auto node = static_cast<std::int32_t>(i);
      RandomStream random(stream_seed(seed, 3), i);
      edges.push_back({node, node});
      const std::int64_t wires = random.round(fan_out.at(random.unit()));
      for (std::int64_t w = 0; w < wires; ++w) {
        const std::int32_t other = wire_end(random, node, nodes, reach);
        edges.push_back({node, other});
        if (!random.chance(unsymmetric)) edges.push_back({other, node});
      }
      double share = rail_fraction;
      for (const std::int32_t rail : rails) {
        if (random.chance(share)) {
          edges.push_back({node, rail});
          edges.push_back({rail, node});
        }
        share /= 2;
      }
    }
    return {pattern_from_edges(nodes, nodes, std::move(edges), false), true, {}};
  }

 private:
  static double expected_entries(const Options& options) {
    return static_cast<double>(kNodes(options)) * (1 + kMean(options) + 4 * kRailFraction(options));
  }

  // The other end of a wire from `node`: its length is 1 at least, in either direction.
  static std::int32_t wire_end(RandomStream& random, std::int64_t node, std::int64_t nodes,
                               double reach) {
    while (true) {
      const double length = std::pow(1 - random.unit(), -1 / (reach - 1));
      const bool up = random.chance(0.5);
      if (length >= static_cast<double>(nodes)) continue;
      const std::int64_t end = node + (up ? 1 : -1) * static_cast<std::int64_t>(length);
      if (end >= 0 && end < nodes) return static_cast<std::int32_t>(end);
    }
  }
};

}  // namespace
}  // namespace spmmbench::gen_circuit

SPMMBENCH_REGISTER_GENERATOR(spmmbench::gen_circuit::Circuit);
