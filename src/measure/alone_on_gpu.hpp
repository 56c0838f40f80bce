#pragma once
// What one preparation is given of an A that lies on the GPU alone.

#include <memory>

#include "gpu/download_csr.hpp"
#include "spmmbench/problem.hpp"
#include "spmmbench/reordering.hpp"
#include "spmmbench/spec.hpp"

namespace spmmbench {

// Outlives what is prepared from it. What reads A on the host makes a copy there, and its row
// orders are made anew: the preparation pays for both.
class AloneOnGpu {
 public:
  // `a.on_device` outlives this. `reorder`: the order that its rows have already.
  AloneOnGpu(const SparseOperand& a, const Spec& reorder, Device& device)
      : on_host_(*a.on_device, device), orders_(make_row_orders(HostCsr(&on_host_), reorder)) {}
  void give_to(SparseOperand& a) {
    a.a = HostCsr(&on_host_);
    a.orders = orders_.get();
  }

 private:
  DownloadedCsr on_host_;
  std::unique_ptr<RowOrders> orders_;
};

}  // namespace spmmbench
