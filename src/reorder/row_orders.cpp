// The one place where orderings are looked up and computed for a run.

#include <utility>

#include "spmmbench/registry.hpp"
#include "spmmbench/shared_parts.hpp"

namespace spmmbench {
namespace {

class SharedOrders final : public RowOrders {
 public:
  SharedOrders(HostCsr matrix, const Spec& current, OrderSource source)
      : matrix_(matrix), current_(current.to_string()), source_(std::move(source)) {}

  const Permutation& get(const std::string& text, StageTimer& stages) override {
    const Spec spec = Spec::parse(text);
    const std::string name = spec.to_string();
    if (name == "natural" || name == "none" || name == current_) return unchanged_;
    const auto& order =
        orders_.get(name, [&](StageTimer& cost) { return source_(*matrix_, spec, cost); });
    stages.add_once(name, kReorderStage, order.cost.total_ms());
    for (const std::string& stage : order.cost.kept()) stages.mark_kept(stage);
    return order.part;
  }

 private:
  HostCsr matrix_;
  std::string current_;
  OrderSource source_;
  Permutation unchanged_;
  SharedParts<std::string, Permutation> orders_;
};

}  // namespace

Permutation compute_order(const CsrMatrix& matrix, const Spec& order, StageTimer& cost) {
  const auto timed = cost.scope(kReorderStage);
  return Registry<Reordering>::instance().at(order.name).compute(matrix, order.options);
}

std::unique_ptr<RowOrders> make_row_orders(HostCsr matrix, const Spec& current,
                                           OrderSource source) {
  return std::make_unique<SharedOrders>(matrix, current, std::move(source));
}

}  // namespace spmmbench
