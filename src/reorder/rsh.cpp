// The locality-aware ordering of RSH-SpMM (arXiv 2603.08734, section 3.4): a path through the rows
// on which the sum of 1 - weighted Jaccard similarity is small. Every stage can be switched off.
// Where the paper gives no value, the default was measured.

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "reorder/compact.hpp"
#include "reorder/rsh_neighbors.hpp"
#include "reorder/rsh_path.hpp"
#include "reorder/similarity.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::rsh {
namespace {

const auto kAlpha =
    real_option("alpha", "0.5", 0, 4, "columns weigh count^-alpha; 0 is plain Jaccard");
const auto kNeighbours = integer_option("k", 4, 1, 64, "neighbours kept per row");
const auto kFeatures =
    integer_option("features", 8, 1, 64, "rarest columns per row that find candidates");
const auto kCandidates = integer_option("candidates", 32, 4, 1024, "rows compared per row");
const auto kForest =
    flag_option("mst", true, "order by the minimum spanning forest; 0 keeps the rows as given");
const auto kTwoOpt = flag_option("two_opt", true, "2-opt inside stretches of two windows");
const auto kIsolation = flag_option("isolation", true, "move rows that resemble neither neighbour");
const auto kIsolatedBelow = real_option("isolated_below", "0.02", 0, 1,
                                        "similarity under which a neighbour does not count");
const auto kWindow = integer_option("window", 8, 2, 64, "rows per window for 2-opt");
const auto kDrawSeed = seed_option("of the draws from popular columns");

class Rsh final : public Reordering {
 public:
  std::string name() const override { return "rsh"; }
  std::string summary() const override {
    return "weighted-Jaccard neighbours, spanning forest, 2-opt, isolated rows moved (RSH-SpMM)";
  }
  std::vector<OptionSpec> options() const override {
    return {kAlpha,  kNeighbours, kFeatures,      kCandidates, kForest,
            kTwoOpt, kIsolation,  kIsolatedBelow, kWindow,     kDrawSeed};
  }
  Permutation compute(const CsrMatrix& matrix, const Options& options) const override {
    return order_compactly(matrix,
                           [&](const CsrMatrix& pattern) { return order_of(pattern, options); });
  }

 private:
  static Permutation order_of(const CsrMatrix& matrix, const Options& options) {
    std::vector<std::int32_t> counts = column_counts(matrix);
    const WeightedJaccard jaccard(matrix, counts, kAlpha(options));
    const bool mst = kForest(options), isolation = kIsolation(options);
    RshNeighborOptions search;
    search.k = kNeighbours(options);
    search.features = kFeatures(options);
    search.candidates = kCandidates(options);
    search.seed = kDrawSeed(options);
    RshNeighbors neighbors;
    if (mst || isolation) neighbors = find_neighbors(jaccard, std::move(counts), search);

    Permutation order;
    if (mst) {
      order = spanning_forest_order(neighbors, matrix.rows);
    } else {
      order.resize(matrix.rows);
      std::iota(order.begin(), order.end(), 0);
    }
    if (kTwoOpt(options)) two_opt(jaccard, kWindow(options), order);
    if (isolation) relocate_isolated(jaccard, neighbors, kIsolatedBelow(options), order);
    return order;
  }
};

SPMMBENCH_REGISTER_REORDERING(Rsh);

}  // namespace
}  // namespace spmmbench::rsh
