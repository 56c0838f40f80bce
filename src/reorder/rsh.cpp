// The locality-aware ordering of RSH-SpMM (arXiv 2603.08734, section 3.4): a path through the rows
// with a small sum of 1 - weighted Jaccard similarity. Every stage can be switched off. Values the
// paper leaves open are measured defaults.

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "reorder/compact.hpp"
#include "reorder/rsh_neighbors.hpp"
#include "reorder/rsh_path.hpp"
#include "reorder/similarity.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

class Rsh final : public Reordering {
 public:
  std::string name() const override { return "rsh"; }
  std::string summary() const override {
    return "weighted-Jaccard neighbours, spanning forest, 2-opt, isolated rows moved (RSH-SpMM)";
  }
  std::vector<OptionSpec> options() const override {
    return {{"alpha", "0.5", "columns weigh count^-alpha; 0 is plain Jaccard"},
            {"k", "4", "neighbours kept per row, 1 to 64"},
            {"features", "8", "rarest columns per row that find candidates, 1 to 64"},
            {"candidates", "32", "rows compared per row, 4 to 1024"},
            {"mst", "1", "order by the minimum spanning forest; 0 keeps the rows as given"},
            {"two_opt", "1", "2-opt inside stretches of two windows"},
            {"isolation", "1", "move rows that resemble neither neighbour"},
            {"isolated_below", "0.02", "similarity under which a neighbour does not count"},
            {"window", "8", "rows per window for 2-opt, 2 to 64"},
            {"seed", "1", "of the draws from popular columns"}};
  }
  Permutation compute(const CsrMatrix& matrix, const Options& options) const override {
    options.require_known(this->options(), name());
    return order_compactly(matrix,
                           [&](const CsrMatrix& pattern) { return order_of(pattern, options); });
  }

 private:
  static Permutation order_of(const CsrMatrix& matrix, const Options& options) {
    std::vector<std::int32_t> counts = column_counts(matrix);
    const WeightedJaccard jaccard(matrix, counts, options.get_double("alpha", 0.5));
    const bool mst = options.get_bool("mst", true), isolation = options.get_bool("isolation", true);
    RshNeighborOptions search;
    search.k = static_cast<int>(options.get_int("k", 4, 1, 64));
    search.features = static_cast<int>(options.get_int("features", 8, 1, 64));
    search.candidates = static_cast<int>(options.get_int("candidates", 32, 4, 1024));
    search.seed = static_cast<std::uint64_t>(options.get_int("seed", 1));
    RshNeighbors neighbors;
    if (mst || isolation) neighbors = find_neighbors(jaccard, std::move(counts), search);

    Permutation order;
    if (mst) {
      order = spanning_forest_order(neighbors, matrix.rows);
    } else {
      order.resize(matrix.rows);
      std::iota(order.begin(), order.end(), 0);
    }
    if (options.get_bool("two_opt", true))
      two_opt(jaccard, static_cast<int>(options.get_int("window", 8, 2, 64)), order);
    if (isolation)
      relocate_isolated(jaccard, neighbors, options.get_double("isolated_below", 0.02), order);
    return order;
  }
};

SPMMBENCH_REGISTER_REORDERING(Rsh);

}  // namespace
}  // namespace spmmbench
