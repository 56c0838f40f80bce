#include <algorithm>
#include <numeric>

#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

class Degree final : public Reordering {
 public:
  std::string name() const override { return "degree"; }
  std::string summary() const override { return "longest rows first, equal ones as given"; }
  Permutation compute(const CsrMatrix& matrix, const Options& /*options*/) const override {
    Permutation order(matrix.rows);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return matrix.row_length(a) > matrix.row_length(b);
    });
    return order;
  }
};

SPMMBENCH_REGISTER_REORDERING(Degree);

}  // namespace
}  // namespace spmmbench
