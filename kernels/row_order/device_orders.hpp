#pragma once
// The row orders of A for a kernel on the device: `match` is computed there, all others on the
// host.

#include <string>

#include "common/resident_csr.hpp"
#include "row_order/match_order.hpp"
#include "row_order/resident_orders.hpp"
#include "spmmbench/problem.hpp"
#include "spmmbench/shared_parts.hpp"

namespace spmmbench {

class DeviceOrders final : public RowOrders {
 public:
  // `a.orders` and the device outlive this.
  DeviceOrders(const SparseOperand& a, Device& device)
      : a_(a), device_(device), on_device_(a.orders, device) {}

  const Permutation& get(const std::string& spec, StageTimer& stages) override {
    if (!match::form_of(spec) || !can_match(a_.m(), a_.k(), a_.nnz()))
      return a_.orders->get(spec, stages);
    const auto& order = matches_.get(spec, [&](StageTimer& making) {
      const ResidentCsr csr(a_, device_, making);
      const Buffer& there = on_device_.get(csr.view(), spec, making);
      const auto timed = making.scope(kReorderStage);
      if (there.data() == nullptr) return Permutation();
      Permutation rows(a_.m());
      device_.download(rows.data(), there.data(), rows.size() * sizeof(rows[0]));
      return rows;
    });
    stages.add(order.cost);
    return order.part;
  }

 private:
  SparseOperand a_;
  Device& device_;
  ResidentOrders on_device_;
  SharedParts<std::string, Permutation> matches_;
};

inline SparseOperand with_orders(SparseOperand a, RowOrders& orders) {
  a.orders = &orders;
  return a;
}

}  // namespace spmmbench
