#include <numeric>

#include "spmmbench/registry.hpp"

namespace spmmbench::none {
namespace {

class None final : public Reordering {
 public:
  std::string name() const override { return "none"; }
  std::string summary() const override { return "rows as given"; }
  Permutation compute(const CsrMatrix& matrix, const Options& /*options*/) const override {
    Permutation order(matrix.rows);
    std::iota(order.begin(), order.end(), 0);
    return order;
  }
};

SPMMBENCH_REGISTER_REORDERING(None);

}  // namespace
}  // namespace spmmbench::none
