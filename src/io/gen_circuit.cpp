// Circuit-like matrix (modified nodal analysis): a full diagonal, wires that are mostly short in
// the netlist's order with a power-law tail of long ones (Rent's rule), few nodes of large fan-out,
// and rails (supply, clock, reset) whose rows and columns are dense.

#include <algorithm>
#include <cmath>

#include "io/generator_util.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

class Circuit final : public Generator {
 public:
  std::string name() const override { return "circuit"; }
  std::string summary() const override { return "circuit: local wires, dense supply rails"; }
  std::vector<OptionSpec> options() const override {
    return {
        {"nodes", "20000", "number of circuit nodes"},
        {"mean", "6", "mean number of wires at a node, rails not counted, before repeats merge"},
        {"reach", "1.8", "density of wire lengths falls as length^-reach"},
        {"rails", "4", "nodes with a dense row and column"},
        {"rail_fraction", "0.1", "nodes on the first rail; each further rail has half as many"},
        {"unsymmetric", "0.1", "fraction of the wires stored in one direction only"},
        kSeedOption};
  }

  Generated generate(const Options& given) const override {
    const OptionReader options(*this, given);
    const std::int64_t nodes = options.integer("nodes", 2, kMaxExtent);
    const double mean = options.number("mean", 0.01, 1000);
    const double reach = options.number("reach", 1.05, 10);
    const double rail_fraction = options.number("rail_fraction", 0, 1);
    const double unsymmetric = options.number("unsymmetric", 0, 1);
    const std::int64_t rail_count =
        options.integer("rails", 0, std::min<std::int64_t>(nodes, 4096));
    require_entries(static_cast<double>(nodes) * (1 + mean + 4 * rail_fraction));
    const std::uint64_t seed = options.seed();

    RandomStream placement(stream_seed(seed, 1), 0);
    const Columns rail_set = sample_distinct(placement, nodes, rail_count);
    std::vector<std::int32_t> rails;
    for (const std::int32_t i : random_permutation(rail_count, stream_seed(seed, 2)))
      rails.push_back(rail_set[i]);

    const PowerLaw fan_out(mean / 2, 2.7, 50 * mean);
    std::vector<Edge> edges;
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
    return {pattern_from_edges(nodes, nodes, edges, false), true, {}};
  }

 private:
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
}  // namespace spmmbench

SPMMBENCH_REGISTER_GENERATOR(spmmbench::Circuit);
