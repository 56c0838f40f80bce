#pragma once
// Row orders of a matrix on the device that stay there.

#include <string>

#include "row_order/shared_orders.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"
#include "spmmbench/reordering.hpp"
#include "spmmbench/shared_parts.hpp"

namespace spmmbench {

// Natural, `match` and `degree` are made on the device, any other order on the host.
class ResidentOrders {
 public:
  // `host` and the device outlive this. Where `host` is a SharedOrders, the orders are kept there.
  ResidentOrders(RowOrders* host, Device& device)
      : host_(host), shared_(dynamic_cast<SharedOrders*>(host)), device_(device) {}

  // An order of `a`, the same in every call: an int32 for each row; null: natural. Stage "reorder".
  const Buffer& get(const DeviceCsr& a, const std::string& spec, StageTimer& stages);
  // What windows gather in them, by spec.
  SharedParts<std::string, SurveyedWindows>& surveyed() {
    return shared_ != nullptr ? shared_->surveyed() : own_surveyed_;
  }
  // How many rows of B return from memory in them.
  ReturnedShares& returned() { return shared_ != nullptr ? shared_->returned() : own_returned_; }

 private:
  Buffer make(const DeviceCsr& a, const std::string& spec, StageTimer& cost);

  RowOrders* host_;
  SharedOrders* shared_;  // or null
  Device& device_;
  SharedParts<std::string, Buffer> own_;
  SharedParts<std::string, SurveyedWindows> own_surveyed_;
  ReturnedShares own_returned_;
};

}  // namespace spmmbench
