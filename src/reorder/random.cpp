#include "spmmbench/random.hpp"

#include <numeric>
#include <utility>

#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

class Random final : public Reordering {
 public:
  std::string name() const override { return "random"; }
  std::string summary() const override { return "shuffled rows: the worst case for locality"; }
  std::vector<OptionSpec> options() const override { return {{"seed", "1", "of the shuffle"}}; }
  Permutation compute(const CsrMatrix& matrix, const Options& options) const override {
    options.require_known(this->options(), name());
    const auto seed = static_cast<std::uint64_t>(options.get_int("seed", 1));
    Permutation order(matrix.rows);
    std::iota(order.begin(), order.end(), 0);
    for (std::int64_t i = matrix.rows - 1; i > 0; --i)  // Fisher-Yates
      std::swap(order[i], order[hash_position(seed, i, 0) % static_cast<std::uint64_t>(i + 1)]);
    return order;
  }
};

SPMMBENCH_REGISTER_REORDERING(Random);

}  // namespace
}  // namespace spmmbench
