#include "spmmbench/random.hpp"

#include <numeric>
#include <utility>

#include "spmmbench/registry.hpp"

namespace spmmbench::random {
namespace {

const auto kShuffleSeed = seed_option("of the shuffle");

class Random final : public Reordering {
 public:
  std::string name() const override { return "random"; }
  std::string summary() const override { return "shuffled rows: the worst case for locality"; }
  std::vector<OptionSpec> options() const override { return {kShuffleSeed}; }
  Permutation compute(const CsrMatrix& matrix, const Options& options) const override {
    const auto seed = kShuffleSeed(options);
    Permutation order(matrix.rows);
    std::iota(order.begin(), order.end(), 0);
    for (std::int64_t i = matrix.rows - 1; i > 0; --i)  // Fisher-Yates
      std::swap(order[i], order[hash_position(seed, i, 0) % static_cast<std::uint64_t>(i + 1)]);
    return order;
  }
};

SPMMBENCH_REGISTER_REORDERING(Random);

}  // namespace
}  // namespace spmmbench::random
