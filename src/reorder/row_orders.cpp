// The one place where orderings are looked up and computed for a run.

#include "spmmbench/registry.hpp"
#include "spmmbench/shared_parts.hpp"

namespace spmmbench {
namespace {

class CachedOrders final : public RowOrders {
 public:
  CachedOrders(const CsrMatrix& matrix, const Spec& current)
      : matrix_(matrix), current_(current.to_string()) {}

  const Permutation& get(const std::string& text, StageTimer& stages) override {
    const Spec spec = Spec::parse(text);
    const std::string name = spec.to_string();
    if (name == "natural" || name == "none" || name == current_) return unchanged_;
    const auto& order = orders_.get(name, [&](StageTimer& cost) {
      const auto timed = cost.scope(kStage);
      return Registry<Reordering>::instance().at(spec.name).compute(matrix_, spec.options);
    });
    stages.add_once(name, kStage, order.cost.total_ms());
    return order.part;
  }

 private:
  static constexpr const char* kStage = "reorder";

  const CsrMatrix& matrix_;
  std::string current_;
  Permutation unchanged_;
  SharedParts<std::string, Permutation> orders_;
};

}  // namespace

std::unique_ptr<RowOrders> make_row_orders(const CsrMatrix& matrix, const Spec& current) {
  return std::make_unique<CachedOrders>(matrix, current);
}

}  // namespace spmmbench
