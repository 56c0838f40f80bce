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
    if (spec != "match" || !can_match(a_.m(), a_.k(), a_.nnz()))
      return a_.orders->get(spec, stages);
    return match_.get(stages, [&](StageTimer& cost) {
      const ResidentCsr csr(a_, device_, cost);
      const Buffer& order = on_device_.get(csr.view(), spec, cost);
      const auto timed = cost.scope(kReorderStage);
      Permutation rows(a_.m());
      device_.download(rows.data(), order.data(), rows.size() * sizeof(rows[0]));
      return rows;
    });
  }

 private:
  SparseOperand a_;
  Device& device_;
  ResidentOrders on_device_;
  SharedPart<Permutation> match_;
};

inline SparseOperand with_orders(SparseOperand a, RowOrders& orders) {
  a.orders = &orders;
  return a;
}

}  // namespace spmmbench
